#include "dist/transport/mpi/mpi_library.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <filesystem>
#include <system_error>

namespace ringtail {
namespace {

std::filesystem::path ModulePath() {
  std::error_code ignored;  // an empty path fails in dlopen, with its name
  const auto program = std::filesystem::read_symlink("/proc/self/exe", ignored);
  return program.parent_path().parent_path() / "lib" / "ringtail" / "libringtail_mpi.so";
}

}  // namespace

std::unique_ptr<MpiPort> OpenMpiPort(std::string* error) {
  const std::filesystem::path path = ModulePath();
  if (!std::filesystem::exists(path)) {
    *error = fmt::format(
        "{} is not there: it is built where MPI is (Debian: libopenmpi-dev); build again, or leave "
        "out dist.transport",
        path.string());
    return nullptr;
  }
  // Global: Open MPI's own plug-ins look for its symbols.
  void* const module = dlopen(path.c_str(), RTLD_NOW | RTLD_GLOBAL);
  if (module == nullptr) {
    *error = fmt::format("{} cannot be loaded: {}", path.string(), dlerror());
    return nullptr;
  }
  const auto open =
      reinterpret_cast<RingtailOpenMpiPortFunction>(dlsym(module, kRingtailOpenMpiPort));
  if (open == nullptr) {
    *error = fmt::format("{} is not a module of Ringtail's", path.string());
    return nullptr;
  }
  return std::unique_ptr<MpiPort>(open(kMpiPortVersion, error));
}

}  // namespace ringtail
