// One parallel pass over a parameter block, for update rules.
//
// The block is cut into ranges of a fixed size, for any number of threads, and each range is walked
// parameter by parameter: a rule looks up the properties of a parameter (decay, trust ratio) once
// per part, and its inner loop has no branch. Ranges of equal size also balance the work, however
// uneven the parameters are. Thread-safety: the trainer thread only; `fn` runs
// on several threads at once, on disjoint parts.
#ifndef RINGTAIL_OPTIM_PARAMETER_WALK_H_
#define RINGTAIL_OPTIM_PARAMETER_WALK_H_

#include <cstdint>
#include <functional>
#include <vector>

#include "core/parameter.h"

namespace ringtail {

// A part of one parameter: elements [begin, end) of the arena's block.
struct ParameterPart {
  size_t parameter;  // index into ParameterArena::parameters()
  int64_t begin, end;
};

// Calls fn once for each part; the parts cover each parameter exactly once, and no gaps.
void WalkParameters(const ParameterArena& arena,
                    const std::function<void(const ParameterPart&)>& fn);

// Sums of squares of a parameter's weights and of their update, for rules whose rate depends on the
// norms.
struct NormSquares {
  double weight = 0, update = 0;
};

// Per parameter, the sum of `fn` over its parts, added in the block's order: the same bits for any
// number of threads.
std::vector<NormSquares> SumOverParameters(
    const ParameterArena& arena, const std::function<NormSquares(const ParameterPart&)>& fn);

}  // namespace ringtail

#endif  // RINGTAIL_OPTIM_PARAMETER_WALK_H_
