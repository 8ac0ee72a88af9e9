#include "dist/planner/choice.h"

#include <fmt/format.h>

#include "core/text/counted.h"

namespace ringtail {
namespace {

// Whether ranks make the steps that one of them would make with all images.
bool TrainsAsOneRank(const Choice& choice) {
  return choice.scheme == kDenseScheme && !choice.divided && !choice.has_rounds() &&
         !choice.by_speed;
}

}  // namespace

std::string Describe(const Choice& choice) {
  if (choice.hosts == 1 && TrainsAsOneRank(choice)) return "one host";
  const std::string hosts =
      choice.hosts == 1 ? std::string("one host") : fmt::format("{} hosts", choice.hosts);
  const std::string what =
      fmt::format("{}, {}", hosts, choice.divided ? "linear layers divided" : choice.scheme);
  const std::string when =
      choice.has_rounds() ? Counted(choice.period, "local step") : std::string("every step");
  return fmt::format("{}, {}{}{}", what, when, choice.overlap ? ", overlapped" : "",
                     choice.by_speed ? ", images divided by speed" : "");
}

}  // namespace ringtail
