#include "dist/planner/choice.h"

#include <fmt/format.h>

#include "core/text/counted.h"

namespace ringtail {

std::string Describe(const Choice& choice) {
  if (choice.hosts == 1) return "one host";
  const std::string what = fmt::format("{} hosts, {}", choice.hosts,
                                       choice.divided ? "linear layers divided" : choice.scheme);
  if (!choice.has_rounds()) return what + ", every step";
  return fmt::format("{}, {}{}", what, Counted(choice.period, "local step"),
                     choice.overlap ? ", overlapped" : "");
}

}  // namespace ringtail
