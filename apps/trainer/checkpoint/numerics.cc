#include "apps/trainer/checkpoint/numerics.h"

#include <fmt/core.h>

#include "apps/algorithm_choices.h"
#include "core/kernel_isa.h"
#include "core/logging.h"
#include "core/machine/cpu_model.h"
#include "core/parallel_for.h"
#include "core/text/counted.h"

namespace ringtail {

std::string Numerics::Describe() const {
  return fmt::format("{}, {}{}", Counted(threads, "thread"), isa,
                     matrices.empty() ? "" : ", matrices in " + matrices);
}

std::string ThisMachine() {
  return fmt::format("{}, {}", CpuModel(), CurrentNumerics().Describe());
}

std::string UsedAlgorithms() { return ProgramAlgorithms().Used(); }
Status TakeAlgorithms(const std::string& used) { return ProgramAlgorithms().KeepAll(used); }

Numerics CurrentNumerics() {
  return {.threads = NumComputeThreads(), .isa = KernelIsaName(SelectedKernelIsa())};
}

std::string DescribeOtherNumerics(const Numerics& saved, Numerics now) {
  if (saved.matrices.empty()) now.matrices.clear();  // of older checkpoints
  if (saved.threads == 0 || saved == now) return "";
  return fmt::format("the run began with {}; with {} it continues just as well, but to other bits",
                     saved.Describe(), now.Describe());
}

void KeepAlgorithms(const std::string& used) {
  if (used.empty()) return;
  const Status status = TakeAlgorithms(used);
  if (status.ok()) return ProgramAlgorithms().Resume();
  LogWarning(
      fmt::format("the checkpoint's convolution algorithms cannot be read ({}); they are "
                  "chosen again",
                  status.message()));
}

}  // namespace ringtail
