#include "core/add_to.h"

#include <cstdint>

#include "core/check.h"
#include "core/kernels/add.h"
#include "core/parallel_for.h"

namespace ringtail {

void AddTo(std::span<const float> from, std::span<float> to) {
  constexpr int64_t kGrain = 1 << 15;  // floats per thread at least
  RT_CHECK(from.size() == to.size(), "blocks of one length");
  ParallelFor(std::ssize(to), kGrain, [&](int64_t begin, int64_t end) {
    RT_KERNEL(AddFloats)(from.data() + begin, end - begin, to.data() + begin);
  });
}

}  // namespace ringtail
