#include "dist/planner/choice.h"

#include <fmt/format.h>

namespace ringtail {

std::string Describe(const Choice& choice) {
  if (choice.hosts == 1) return "one host";
  const std::string what = fmt::format("{} hosts, {}", choice.hosts,
                                       choice.divided ? "linear layers divided" : choice.scheme);
  if (choice.period == 1) return what + ", every step";
  return fmt::format("{}, {} local steps{}", what, choice.period,
                     choice.overlap ? ", overlapped" : "");
}

}  // namespace ringtail
