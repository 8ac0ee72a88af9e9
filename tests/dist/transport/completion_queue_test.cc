// Which thread does a transport's work while it waits, and which only waits.
#include "dist/transport/completion_queue.h"

#include <gtest/gtest.h>

#include <memory>

#include "tests/dist/test_world.h"

namespace ringtail {
namespace {

// Its work is one completion.
class OneCompletion : public CompletionHelper {
 public:
  explicit OneCompletion(CompletionQueue* queue) : queue_(queue) {}
  uint32_t Moment() override { return 0; }
  bool Help(uint32_t /*moment*/, Deadline /*deadline*/) override {
    ++visits_;
    queue_->Put({.id = 7, .status = {}});
    return true;
  }
  void Interrupt() override {}
  int visits() const { return visits_; }

 private:
  CompletionQueue* const queue_;
  int visits_ = 0;
};

Deadline In(std::chrono::milliseconds time) { return std::chrono::steady_clock::now() + time; }

TEST(CompletionQueueTest, WhoWaitsHelps) {
  CompletionQueue queue;
  const auto helper = std::make_shared<OneCompletion>(&queue);
  queue.UseHelper(helper);
  Completion completion;
  ASSERT_TRUE(queue.Next(&completion, In(std::chrono::minutes(1))));
  EXPECT_EQ(completion.id, 7);
  EXPECT_EQ(helper->visits(), 1);
}

TEST(CompletionQueueTest, AnOwnerThatOnlyWaitsLeavesTheWorkToOthers) {
  CompletionQueue queue(CompletionQueue::Owner::kOnlyWaits);
  const auto helper = std::make_shared<OneCompletion>(&queue);
  queue.UseHelper(helper);
  Completion completion;
  EXPECT_FALSE(queue.Next(&completion, In(std::chrono::milliseconds(1))));
  EXPECT_EQ(helper->visits(), 0);
  queue.Put({.id = 3, .status = {}});
  ASSERT_TRUE(queue.Next(&completion, In(std::chrono::minutes(1))));
  EXPECT_EQ(completion.id, 3);
}

TEST(CompletionQueue, DrainTakesOutAsManyAsCount) {
  CompletionQueue queue;
  for (const uint64_t id : {1, 99, 2, 99, 3}) queue.Put({.id = id, .status = {}});
  queue.Drain(2, [](const Completion& completion) { return completion.id != 99; });
  queue.Drain(1);  // the second 99
  Completion last;
  ASSERT_TRUE(queue.Next(&last, TestDeadline()));
  EXPECT_EQ(last.id, 3);
}

}  // namespace
}  // namespace ringtail
