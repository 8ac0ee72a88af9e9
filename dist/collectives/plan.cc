#include "dist/collectives/plan.h"

#include <algorithm>

#include "core/check.h"

namespace ringtail {

ElementRange EvenPart(int64_t count, int64_t parts, int64_t i) {
  RT_CHECK(count >= 0 && parts > 0 && i >= 0 && i < parts, "a part must be one of the parts");
  const int64_t small = count / parts, larger = count % parts;
  return {.offset = i * small + std::min(i, larger), .count = small + (i < larger ? 1 : 0)};
}

}  // namespace ringtail
