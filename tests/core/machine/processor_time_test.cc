#include "core/machine/processor_time.h"

#include <gtest/gtest.h>

namespace ringtail {
namespace {

TEST(ProcessorTimeTest, AProcessHasTheTimeOfItsThreads) {
  constexpr double kWork = 0.01;
  const double process = ProcessSeconds(), thread = ThreadSeconds();
  while (ThreadSeconds() - thread < kWork) {
  }
  EXPECT_GE(ProcessSeconds() - process, kWork);
}

}  // namespace
}  // namespace ringtail
