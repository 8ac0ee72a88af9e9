#include "core/logging.h"

#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>

#include "core/text/printable.h"

namespace ringtail {
namespace {

spdlog::logger& Logger() {
  // Never destroyed: threads may log after main().
  static const auto* const logger = new std::shared_ptr<spdlog::logger>([] {
    auto created = spdlog::stderr_color_mt("ringtail");
    created->set_pattern("%^%L%$ %H:%M:%S %v");
    created->set_level(spdlog::level::info);
    const char* const no_color = std::getenv("NO_COLOR");
    if (no_color != nullptr && no_color[0] != '\0') {
      auto& sink = dynamic_cast<spdlog::sinks::stderr_color_sink_mt&>(*created->sinks().front());
      sink.set_color_mode(spdlog::color_mode::never);
    }
    return created;
  }());
  return **logger;
}

std::atomic<bool> redrawn_line = false;

void Log(spdlog::level::level_enum level, std::string_view message) {
  static const bool terminal = isatty(STDERR_FILENO) != 0;
  constexpr std::string_view kClearLine = "\r\033[K";
  if (redrawn_line && terminal) (void)!write(STDERR_FILENO, kClearLine.data(), kClearLine.size());
  Logger().log(level, Printable(message));
}

}  // namespace

void SetRedrawnLine(bool shown) { redrawn_line = shown; }

void LogInfo(std::string_view message) { Log(spdlog::level::info, message); }
void LogWarning(std::string_view message) { Log(spdlog::level::warn, message); }
void LogError(std::string_view message) { Log(spdlog::level::err, message); }

void SilenceLog() { Logger().set_level(spdlog::level::off); }

}  // namespace ringtail
