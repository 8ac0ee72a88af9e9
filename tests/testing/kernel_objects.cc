#include "tests/testing/kernel_objects.h"

#include <fmt/core.h>

#include <filesystem>
#include <sstream>
#include <string_view>

#include "core/check.h"
#include "tests/testing/process.h"

namespace ringtail {
namespace {

// Mangled: "_ZN8ringtail6avx512...", also of a static within one of its functions, its guard, ...
bool IsOf(const std::string& isa, std::string_view symbol) {
  if (!symbol.starts_with("_Z")) return false;
  const size_t name = symbol.find_first_not_of("ZGVTSILNKr", 2);  // letters before the namespaces
  const std::string own = "8ringtail" + std::to_string(isa.size()) + isa;
  return name != std::string_view::npos && symbol.substr(name).starts_with(own);
}

void AddOthers(const std::filesystem::path& object, const std::string& isa,
               std::vector<std::string>* others) {
  const ProcessResult nm =
      RunProcess({"nm", "--defined-only", "--extern-only", "--format=posix", object.string()});
  RT_CHECK(nm.exit_code == 0, nm.err);
  std::istringstream lines(nm.out);
  for (std::string line; std::getline(lines, line);) {
    const std::string symbol = line.substr(0, line.find(' '));
    // The address sanitizer's; and names of types, which are data, for clang's sanitizer of calls.
    if (symbol.starts_with("__odr_asan")) continue;
    if (symbol.starts_with("_ZTI") || symbol.starts_with("_ZTS")) continue;
    if (!IsOf(isa, symbol)) {
      others->push_back(object.filename().string() + ": " + symbol);
    }
  }
}

}  // namespace

std::vector<std::string> SymbolsOutsideTheirIsa(const std::string& binary_dir,
                                                const std::string& library, int* objects) {
  std::vector<std::string> others;
  *objects = 0;
  for (const char* isa : {"baseline", "avx2", "avx512"}) {
    const std::string folder = fmt::format("{}/CMakeFiles/{}_{}.dir", binary_dir, library, isa);
    for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
      if (entry.path().extension() != ".o") continue;
      AddOthers(entry.path(), isa, &others);
      ++*objects;
    }
  }
  return others;
}

}  // namespace ringtail
