// Properties of every schedule: what stages compute, in which order, that they never wait for each
// other forever, and how many activations they hold.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "core/random.h"
#include "dist/pipeline/draw_schedule.h"
#include "dist/pipeline/schedule.h"
#include "tests/dist/pipeline/pipeline_simulator.h"

namespace ringtail {
namespace {

using testing::HasSubstr;

constexpr PipelineKind kKinds[] = {PipelineKind::kGpipe, PipelineKind::kOneForwardOneBackward};
constexpr int kMostStages = 33;

// Fewer, as many, and more than stages; prime; and many.
std::vector<int> MicroBatchesFor(int stages) {
  std::vector<int> counts = {1, 2, 3, 7, stages - 1, stages, stages + 1, 2 * stages + 1, 67};
  std::sort(counts.begin(), counts.end());
  counts.erase(std::unique(counts.begin(), counts.end()), counts.end());
  if (counts.front() == 0) counts.erase(counts.begin());
  return counts;
}

template <typename Check>
void ForEachShape(const Check& check) {
  for (const PipelineKind kind : kKinds) {
    for (int stages = 1; stages <= kMostStages; ++stages) {
      for (const int micro_batches : MicroBatchesFor(stages)) {
        const PipelineShape shape{kind, stages, micro_batches};
        SCOPED_TRACE(testing::Message() << PipelineKindName(kind) << ", " << stages << " stages, "
                                        << micro_batches << " micro-batches");
        check(shape);
        if (testing::Test::HasFailure()) return;
      }
    }
  }
}

std::vector<std::vector<StageOperation>> AllStages(const PipelineShape& shape) {
  std::vector<std::vector<StageOperation>> all;
  all.reserve(shape.stages);
  for (int s = 0; s < shape.stages; ++s) all.push_back(StageOperations(shape, s));
  return all;
}

TEST(PipelineScheduleTest, EveryMicroBatchGoesOnceForwardAndOnceBackInOrder) {
  ForEachShape([](const PipelineShape& shape) {
    for (int s = 0; s < shape.stages; ++s) {
      int forwards = 0, backwards = 0;
      for (const StageOperation& operation : StageOperations(shape, s)) {
        if (operation.pass == PassKind::kForward) {
          EXPECT_EQ(operation.micro_batch, forwards++) << "stage " << s;
        } else {
          EXPECT_EQ(operation.micro_batch, backwards++) << "stage " << s;
          EXPECT_LE(backwards, forwards) << "a backward before its forward in stage " << s;
        }
      }
      // The flush: when a step ends, nothing is under way.
      EXPECT_EQ(forwards, shape.micro_batches);
      EXPECT_EQ(backwards, shape.micro_batches);
    }
  });
}

TEST(PipelineScheduleTest, StagesHoldExactlyAsManyActivationsAsIsSaid) {
  ForEachShape([](const PipelineShape& shape) {
    for (int s = 0; s < shape.stages; ++s) {
      const int expected = shape.kind == PipelineKind::kGpipe
                               ? shape.micro_batches
                               : std::min(shape.stages - s, shape.micro_batches);
      EXPECT_EQ(CountMostAlive(StageOperations(shape, s)), expected) << "stage " << s;
      EXPECT_EQ(MostAlive(shape, s), expected) << "stage " << s;
    }
  });
}

TEST(PipelineScheduleTest, HasNoDeadlockWithBlockingReceivesAndBoundedSlots) {
  Rng rng(RngKey(33).With(kTestStream));
  ForEachShape([&](const PipelineShape& shape) {
    for (const int slots : {1, 2}) {
      const PipelineRun run = RunStages(AllStages(shape), slots, &rng);
      EXPECT_EQ(run.deadlock, "") << slots << " slots";
      EXPECT_EQ(run.messages_left, 0);
      EXPECT_LE(run.most_in_lane, slots);
    }
  });
}

// The simulator finds deadlocks: 1F1B has one where neighbours send to each other and neither send
// ends before it is received. GPipe never has, as all messages under way go in one direction.
TEST(PipelineScheduleTest, WithoutAnySlotOnlyGpipeEnds) {
  Rng rng(RngKey(34).With(kTestStream));
  ForEachShape([&](const PipelineShape& shape) {
    const PipelineRun run = RunStages(AllStages(shape), 0, &rng);
    const bool crosses = shape.kind == PipelineKind::kOneForwardOneBackward && shape.stages >= 2 &&
                         shape.micro_batches >= 2;
    EXPECT_THAT(run.deadlock, crosses
                                  ? testing::Matcher<std::string>(HasSubstr("cannot send after F"))
                                  : testing::Matcher<std::string>(""));
  });
}

TEST(PipelineScheduleTest, AnotherOrderOfOneStageIsADeadlock) {
  Rng rng(RngKey(35).With(kTestStream));
  auto stages = AllStages({PipelineKind::kOneForwardOneBackward, 3, 4});
  std::swap(stages[1][0], stages[1][2]);  // a backward before any forward
  EXPECT_THAT(RunStages(stages, 2, &rng).deadlock, HasSubstr("stage 1 waits before B0"));
}

TEST(PipelineScheduleTest, MessagesCrossEveryBoundaryOnceEachWay) {
  const int stages = 4;
  for (int s = 0; s < stages; ++s) {
    const StageOperation forward{PassKind::kForward, 5}, backward{PassKind::kBackward, 5};
    EXPECT_EQ(ReceivedBefore(forward, s, stages).has_value(), s > 0);
    EXPECT_EQ(SentAfter(forward, s, stages).has_value(), s < stages - 1);
    EXPECT_EQ(ReceivedBefore(backward, s, stages).has_value(), s < stages - 1);
    EXPECT_EQ(SentAfter(backward, s, stages).has_value(), s > 0);
    if (s == 0) continue;
    // What one sends the other waits for.
    EXPECT_EQ(ReceivedBefore(forward, s, stages), SentAfter(forward, s - 1, stages));
    EXPECT_EQ(ReceivedBefore(backward, s - 1, stages), SentAfter(backward, s, stages));
    EXPECT_EQ(ReceivedBefore(forward, s, stages),
              (BoundaryMessage{PassKind::kForward, 5, s - 1, s}));
    EXPECT_EQ(SentAfter(backward, s, stages), (BoundaryMessage{PassKind::kBackward, 5, s, s - 1}));
  }
}

TEST(PipelineScheduleTest, KindsHaveNames) {
  for (const PipelineKind kind : kKinds) {
    EXPECT_EQ(ParsePipelineKind(PipelineKindName(kind)).value(), kind);
  }
  EXPECT_THAT(ParsePipelineKind("zigzag").status().message(),
              HasSubstr("'zigzag' is no schedule of a pipeline; there are gpipe and 1f1b"));
}

TEST(DrawScheduleTest, DrawsTheTimetable) {
  EXPECT_EQ(DrawSchedule({PipelineKind::kGpipe, 3, 4}),
            "stage 0  F0 F1 F2 F3 .  .  .  .  B0 B1 B2 B3\n"
            "stage 1  .  F0 F1 F2 F3 .  .  B0 B1 B2 B3 .\n"
            "stage 2  .  .  F0 F1 F2 F3 B0 B1 B2 B3 .  .\n");
  EXPECT_EQ(DrawSchedule({PipelineKind::kOneForwardOneBackward, 3, 4}),
            "stage 0  F0 F1 F2 .  .  B0 F3 B1 .  B2 .  B3\n"
            "stage 1  .  F0 F1 .  B0 F2 B1 F3 B2 .  B3 .\n"
            "stage 2  .  .  F0 B0 F1 B1 F2 B2 F3 B3 .  .\n");
  EXPECT_EQ(DrawSchedule({PipelineKind::kGpipe, 1, 2}), "stage 0  F0 F1 B0 B1\n");
}

TEST(DrawScheduleTest, LeavesOutTheMiddleOfALongStep) {
  const std::string drawn = DrawSchedule({PipelineKind::kOneForwardOneBackward, 2, 20}, 40);
  EXPECT_EQ(drawn,
            "stage 0  F0  F1  .   B0  ... B18 .   B19\n"
            "stage 1  .   F0  B0  F1  ... F19 B19 .\n");
  // However narrow, the begin and the end are there.
  EXPECT_EQ(DrawSchedule({PipelineKind::kGpipe, 1, 9}, 1), "stage 0  F0 ... B8\n");
  for (const int width : {30, 60, 100}) {
    std::istringstream lines(DrawSchedule({PipelineKind::kGpipe, 12, 64}, width));
    for (std::string line; std::getline(lines, line);) {
      EXPECT_LE(static_cast<int>(line.size()), width);
    }
  }
}

}  // namespace
}  // namespace ringtail
