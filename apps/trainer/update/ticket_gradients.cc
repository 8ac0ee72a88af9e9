#include "apps/trainer/update/ticket_gradients.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "apps/trainer/update/batch_view.h"
#include "core/add_to.h"

namespace ringtail {

TicketGradients::TicketGradients(const Generation* generation, std::unique_ptr<GradientPass> pass,
                                 std::unique_ptr<DataLoader> loader)
    : generation_(generation),
      image_size_(pass->options().image_size),
      batch_(pass->options().batch),
      images_per_step_(generation->plan.growth_run().images_per_batch),
      loader_(std::move(loader)) {
  passes_[batch_] = std::move(pass);
}

std::vector<TicketGradients::Part> TicketGradients::PartsOf(const Ticket& ticket) const {
  std::vector<Part> parts;
  for (int64_t done = 0; done < ticket.rows; done += batch_) {
    parts.push_back({ticket.first + done, std::min(batch_, ticket.rows - done)});
  }
  return parts;
}

void TicketGradients::Request(const Ticket& ticket) {
  const int64_t per_epoch = generation_->plan.batches_per_epoch() * images_per_step_;
  for (const Part& part : PartsOf(ticket)) {
    loader_->Request(part.first / per_epoch, part.first % per_epoch, part.rows);
  }
  requested_.push_back(ticket);
}

StatusOr<GradientPass*> TicketGradients::PassOf(int64_t rows) {
  std::unique_ptr<GradientPass>& pass = passes_[rows];
  if (pass != nullptr) return pass.get();
  GradientPass::Options options = passes_.at(batch_)->options();
  options.batch = rows;
  options.parts = std::gcd(rows, options.parts);
  RT_ASSIGN_OR_RETURN(pass, GradientPass::Create(generation_->state().model(), options));
  return pass.get();
}

StepBatch TicketGradients::PlaceOf(const Part& part) const {
  const int64_t step = part.first / images_per_step_;
  return {.step = step, .first_row = part.first - step * images_per_step_};
}

StatusOr<OwnStep> TicketGradients::Compute(const StepWork& work, GradientListener* listener) {
  if (requested_.empty()) Request(work.ticket);
  if (work.next && requested_.size() == 1) Request(*work.next);
  RT_CHECK(requested_.front() == work.ticket, "tickets are used in the order in which they came");
  Progress* const progress = generation_->world->progress();
  const std::span<float> gradients = generation_->arena().grads();
  OwnStep own;
  const std::vector<Part> parts = PartsOf(work.ticket);
  for (size_t i = 0; i < parts.size(); ++i) {
    progress->Enter(Phase::kDataWait);
    RT_ASSIGN_OR_RETURN(const LoadedBatch loaded, loader_->Next());
    RT_ASSIGN_OR_RETURN(GradientPass* const pass, PassOf(parts[i].rows));
    own.wait_seconds += loaded.wait_seconds;
    progress->Enter(Phase::kForward);
    const LossResult loss = pass->Run(ViewOf(loaded), PlaceOf(parts[i]), listener);
    own.loss += loss;
    own.times.forward_seconds += pass->times().forward_seconds;
    own.times.backward_seconds += pass->times().backward_seconds;
    if (i > 0) AddTo(sum_.floats(), gradients);
    if (i + 1 == parts.size()) break;
    if (sum_.size_bytes() == 0) sum_ = AlignedBuffer(gradients.size_bytes());
    std::ranges::copy(gradients, sum_.floats().begin());
  }
  requested_.pop_front();
  own.find_not_finite = [this, ticket = work.ticket] { return WhereNotFinite(ticket); };
  return own;
}

// Drops what was read ahead, and asks for it again.
StatusOr<std::string> TicketGradients::WhereNotFinite(const Ticket& ticket) {
  std::deque<Ticket> ahead = std::exchange(requested_, {});
  loader_->Seek(0, 0);
  Request(ticket);
  std::string found;
  for (const Part& part : PartsOf(ticket)) {
    RT_ASSIGN_OR_RETURN(const LoadedBatch loaded, loader_->Next());
    if (!found.empty()) continue;
    RT_ASSIGN_OR_RETURN(GradientPass* const pass, PassOf(part.rows));
    found = pass->DescribeNonFinite(ViewOf(loaded), PlaceOf(part));
  }
  requested_.clear();
  for (const Ticket& next : ahead) Request(next);
  return found;
}

}  // namespace ringtail
