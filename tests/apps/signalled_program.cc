#include "tests/apps/signalled_program.h"

#include <chrono>
#include <thread>

namespace ringtail {

bool WaitForSteps(ChildProcess* child, uint64_t steps) {
  for (uint64_t seen = 0; seen < steps;) {
    const auto line = child->ReadLine();
    if (!line) return false;
    seen += line->find("  step ") != std::string::npos ? 1 : 0;  // ("epoch 1  step 1/9  loss ...")
  }
  return true;
}

ProcessResult SignalAtRandom(const std::vector<std::string>& program, int signal,
                             uint64_t most_steps, uint64_t most_microseconds, Rng* rng) {
  ChildProcess child(program);
  WaitForSteps(&child, rng->Below(most_steps));
  std::this_thread::sleep_for(std::chrono::microseconds(rng->Below(most_microseconds)));
  child.Signal(signal);
  return child.Wait();
}

}  // namespace ringtail
