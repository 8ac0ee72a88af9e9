// PostLocalRule: workers that exchange gradients in every step until dist.local.start_epoch, and what
// rounds of local steps have changed from then on (post-local SGD: Lin et al. 2020, "Don't Use Large
// Mini-Batches, Use Local SGD").
//
//   SynchronousRule  step 0 .. first step - 1  | weights, statistics, optimizer state, who is there
//   LocalRoundsRule                            '-> round 0, round 1, ..
//
// Thread-safety: the trainer thread.
#ifndef RINGTAIL_APPS_EMULATOR_RULES_POST_LOCAL_RULE_H_
#define RINGTAIL_APPS_EMULATOR_RULES_POST_LOCAL_RULE_H_

#include <memory>

#include "apps/emulator/rules/local_rounds_rule.h"
#include "apps/emulator/rules/synchronous_rule.h"

namespace ringtail {

class PostLocalRule : public EmulatedRule {
 public:
  // `first_step`: the first one of a round; above 0.
  PostLocalRule(EmulatedJob* job, int64_t first_step)
      : job_(job), first_step_(first_step), dense_(job, first_step, [this] { return Change(); }) {}

  Status Begin() override { return dense_.Begin(); }
  Status OnDeath(int worker) override { return now()->OnDeath(worker); }
  Status OnNotice(int worker) override { return now()->OnNotice(worker); }
  Status OnJoin(int worker) override { return now()->OnJoin(worker); }
  int64_t StateBytes() const override {
    return rounds_ != nullptr ? rounds_->StateBytes() : dense_.StateBytes();
  }
  bool finished() const override {
    return dense_.finished() || (rounds_ != nullptr && rounds_->finished());
  }

 private:
  EmulatedRule* now() { return rounds_ != nullptr ? rounds_.get() : &dense_; }
  Status Change() {
    RT_ASSIGN_OR_RETURN(rounds_, LocalRoundsRule::Create(job_, {.step = first_step_,
                                                                .workers = dense_.workers(),
                                                                .joining = dense_.joining()}));
    return rounds_->Begin();
  }

  EmulatedJob* const job_;
  const int64_t first_step_;
  SynchronousRule dense_;
  std::unique_ptr<EmulatedRule> rounds_;  // null before
};

}  // namespace ringtail

#endif  // RINGTAIL_APPS_EMULATOR_RULES_POST_LOCAL_RULE_H_
