#include "core/terminate.h"

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <new>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>

#include "core/machine/thread_limit.h"

namespace ringtail {
namespace {

constexpr int kExitFailure = 1;
const char* program_name = "ringtail";

// The errors of libraries that start threads: oneTBB's text, and the exception of std::thread.
bool IsAboutThreads(const std::exception& error) {
  const auto* of_system = dynamic_cast<const std::system_error*>(&error);
  return (of_system != nullptr && of_system->code() == std::errc::resource_unavailable_try_again) ||
         std::string_view(error.what()).find("pthread_create") != std::string_view::npos;
}

[[noreturn]] void End(const std::string& sentence) {
  std::fprintf(stderr, "%s: %s\n", program_name, sentence.c_str());
  _exit(kExitFailure);
}

// `what`: " (...)" or empty. Allocates nothing.
[[noreturn]] void EndOutOfMemory(const char* what) {
  std::fprintf(stderr,
               "%s: out of memory%s; take a lower train.batch or smaller images, or raise the "
               "limit (ulimit -v, memory.max of the control group)\n",
               program_name, what);
  _exit(kExitFailure);
}

[[noreturn]] void Explain() {
  try {
    if (const auto error = std::current_exception()) std::rethrow_exception(error);
  } catch (const std::bad_alloc&) {
    EndOutOfMemory("");
  } catch (const std::exception& error) {
    if (IsAboutThreads(error)) {
      End(std::string("a thread could not be started (") + error.what() + "); " +
          DescribeThreadLimits());
    }
    std::fprintf(stderr, "%s: internal error, please report it: %s\n", program_name, error.what());
  } catch (...) {
    std::fprintf(stderr, "%s: internal error, please report it\n", program_name);
  }
  std::abort();
}

}  // namespace

void EndWithoutMemory(size_t bytes) {
  constexpr int kMostBytes = 64;
  char what[kMostBytes];
  std::snprintf(what, sizeof(what), " (cannot allocate %zu MiB)", bytes >> 20);
  EndOutOfMemory(what);
}

void ExplainTermination(const char* program) {
  program_name = program;
  std::set_terminate(Explain);
}

}  // namespace ringtail
