#include "tests/testing/kernel_objects.h"

#include <filesystem>
#include <regex>
#include <sstream>

#include "core/check.h"
#include "tests/testing/process.h"

namespace ringtail {
namespace {

// Mangled: "_ZN8ringtail6avx512...", also of a static within one of its functions, its guard, ...
std::regex NamesOf(const std::string& isa) {
  return std::regex("_Z[A-Z]*N[KVr]*8ringtail" + std::to_string(isa.size()) + isa + ".*");
}

void AddOthers(const std::filesystem::path& object, const std::regex& own,
               std::vector<std::string>* others) {
  const ProcessResult nm =
      RunProcess({"nm", "--defined-only", "--extern-only", "--format=posix", object.string()});
  RT_CHECK(nm.exit_code == 0, nm.err);
  std::istringstream lines(nm.out);
  for (std::string line; std::getline(lines, line);) {
    const std::string symbol = line.substr(0, line.find(' '));
    if (symbol.starts_with("__odr_asan")) continue;  // the address sanitizer's
    if (!std::regex_match(symbol, own)) {
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
    const std::regex own = NamesOf(isa);
    const std::string folder = binary_dir + "/CMakeFiles/" + library + "_" + isa + ".dir";
    for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
      if (entry.path().extension() != ".o") continue;
      AddOthers(entry.path(), own, &others);
      ++*objects;
    }
  }
  return others;
}

}  // namespace ringtail
