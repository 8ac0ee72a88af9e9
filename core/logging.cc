#include "core/logging.h"

#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>

#include "core/printable.h"

namespace ringtail {
namespace {

spdlog::logger& Logger() {
  // Never destroyed: threads may log after main().
  static const auto* const logger = new std::shared_ptr<spdlog::logger>([] {
    auto created = spdlog::stderr_color_mt("ringtail");
    created->set_pattern("%^%L%$ %H:%M:%S %v");
    created->set_level(spdlog::level::info);
    return created;
  }());
  return **logger;
}

}  // namespace

void LogInfo(std::string_view message) { Logger().info(Printable(message)); }
void LogWarning(std::string_view message) { Logger().warn(Printable(message)); }
void LogError(std::string_view message) { Logger().error(Printable(message)); }

void SilenceLog() { Logger().set_level(spdlog::level::off); }

}  // namespace ringtail
