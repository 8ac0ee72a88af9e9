#include "dist/planner/choice.h"

#include <fmt/format.h>

#include "core/text/counted.h"

namespace ringtail {

std::string Describe(const Choice& choice) {
  if (choice.hosts == 1) return "one host";
  const std::string what = fmt::format("{} hosts, {}", choice.hosts,
                                       choice.divided ? "linear layers divided" : choice.scheme);
  const std::string when =
      choice.has_rounds() ? Counted(choice.period, "local step") : std::string("every step");
  return fmt::format("{}, {}{}{}", what, when, choice.overlap ? ", overlapped" : "",
                     choice.by_speed ? ", images divided by speed" : "");
}

}  // namespace ringtail
