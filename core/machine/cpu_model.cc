#include "core/machine/cpu_model.h"

#include <sstream>

#include "core/storage/file.h"

namespace ringtail {
namespace {

constexpr int64_t kMaxBytes = int64_t{16} << 20;  // a few KiB per core

std::string ReadModel() {
  const auto text = ReadFileText("/proc/cpuinfo", kMaxBytes);
  if (text.ok()) {
    std::istringstream lines(*text);
    for (std::string line; std::getline(lines, line);) {
      const size_t colon = line.find(": ");
      if (line.starts_with("model name") && colon != std::string::npos) {
        return line.substr(colon + 2);
      }
    }
  }
  return "unknown processor";
}

}  // namespace

const std::string& CpuModel() {
  static const std::string model = ReadModel();
  return model;
}

}  // namespace ringtail
