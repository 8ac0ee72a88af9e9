#include "apps/trainer/checkpoint/numerics.h"

#include <fmt/core.h>

#include <charconv>

#include "apps/algorithm_choices.h"
#include "core/counted.h"
#include "core/kernel_isa.h"
#include "core/logging.h"
#include "core/machine/cpu_model.h"
#include "core/parallel_for.h"

namespace ringtail {
namespace {

constexpr char kThreadsKey[] = "compute_threads", kIsaKey[] = "instruction_set";
constexpr char kAlgorithmsKey[] = "convolution_algorithms";

}  // namespace

std::string Numerics::Describe() const {
  return fmt::format("{}, {}", Counted(threads, "thread"), isa);
}

std::string ThisMachine() {
  return fmt::format("{}, {}", CpuModel(), CurrentNumerics().Describe());
}

std::string UsedAlgorithms() { return ProgramAlgorithms().Used(); }
Status TakeAlgorithms(const std::string& used) { return ProgramAlgorithms().KeepAll(used); }

Numerics CurrentNumerics() { return {NumComputeThreads(), KernelIsaName(SelectedKernelIsa())}; }

void AddNumerics(const Numerics& numerics, std::map<std::string, std::string>* metadata) {
  (*metadata)[kThreadsKey] = std::to_string(numerics.threads);
  (*metadata)[kIsaKey] = numerics.isa;
  (*metadata)[kAlgorithmsKey] = UsedAlgorithms();
}

Numerics ReadNumerics(const std::map<std::string, std::string>& metadata) {
  constexpr int kMaxThreads = 4096;  // as --threads
  Numerics numerics;
  if (const auto it = metadata.find(kThreadsKey); it != metadata.end()) {
    const std::string& text = it->second;
    int threads = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), threads);
    const bool whole = error == std::errc() && end == text.data() + text.size();
    if (whole && threads >= 1 && threads <= kMaxThreads) numerics.threads = threads;
  }
  if (const auto it = metadata.find(kIsaKey); it != metadata.end()) numerics.isa = it->second;
  return numerics;
}

void KeepAlgorithms(const std::map<std::string, std::string>& metadata) {
  const auto it = metadata.find(kAlgorithmsKey);
  if (it == metadata.end()) return;
  const Status status = TakeAlgorithms(it->second);
  if (status.ok()) return ProgramAlgorithms().Resume();
  LogWarning(
      fmt::format("the checkpoint's convolution algorithms cannot be read ({}); they are "
                  "chosen again",
                  status.message()));
}

}  // namespace ringtail
