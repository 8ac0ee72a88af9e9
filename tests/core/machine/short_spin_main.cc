// Prints four numbers: the processor time, in seconds, that a team of two takes while its master
// sleeps between loops (all of it is spinning), before, during and after the lifetime of a
// ShortSpin, and while a CoreWatch finds a quota in the control groups below the folder argv[1].
// A program of its own, because libgomp reads the environment before main().
#include "core/machine/short_spin.h"

#include <chrono>
#include <cstdio>
#include <thread>

#include "core/machine/core_watch.h"
#include "core/machine/processor_time.h"
#include "core/parallel_for.h"

namespace ringtail {
namespace {

constexpr int kTeam = 2, kPauses = 40;

void OneLoop() {
  ParallelFor(kTeam, 1, [](int64_t, int64_t) {});
}

double SpinningSeconds() {
  OneLoop();
  const double before = ProcessSeconds();
  for (int i = 0; i < kPauses; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    OneLoop();
  }
  return ProcessSeconds() - before;
}

int Main(const char* cgroup_root) {
  SetNumComputeThreads(kTeam);
  const double before = SpinningSeconds();
  double during = 0;
  {
    const ShortSpin short_spin(kTeam);
    during = SpinningSeconds();
  }
  const double after = SpinningSeconds();
  const CoreWatch watch({}, cgroup_root);
  SpinningSeconds();  // its thread may need a moment to start
  std::printf("%f %f %f %f\n", before, during, after, SpinningSeconds());
  return 0;
}

}  // namespace
}  // namespace ringtail

int main(int count, char** arguments) { return count == 2 ? ringtail::Main(arguments[1]) : 2; }
