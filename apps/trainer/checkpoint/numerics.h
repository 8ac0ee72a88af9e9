// Numerics: what the last bits of a step depend on beside config, images and step: the number of
// compute threads (how sums are divided), the instruction set, what the optimizer multiplies
// matrices in, and the algorithm of each convolution. Checkpoints keep them all.
// Thread-safety: functions without state.
#ifndef RINGTAIL_APPS_TRAINER_CHECKPOINT_NUMERICS_H_
#define RINGTAIL_APPS_TRAINER_CHECKPOINT_NUMERICS_H_

#include <string>

#include "core/status.h"

namespace ringtail {

struct Numerics {
  int threads = 0;  // 0: not known
  std::string isa;  // "avx512"; empty: not known
  // "bf16" or "f32"; empty: not known, or the optimizer has no choice (update/bf16_agreement.h).
  std::string matrices;
  bool operator==(const Numerics&) const = default;
  std::string Describe() const;  // "2 threads, avx512, matrices in bf16"
};

// What the speed of a rank, and of each algorithm, depends on: "AMD EPYC 9R14, 2 threads, avx512".
std::string ThisMachine();

Numerics CurrentNumerics();  // those of the process: without `matrices`

// What to say of a run that began with `saved` and continues with `now`; empty: nothing differs, as
// far as is known.
std::string DescribeOtherNumerics(const Numerics& saved, Numerics now);

// The convolution algorithms of all nets so far, as text.
std::string UsedAlgorithms();
// Convolutions of nets set up from now on use those that another rank or run has `used`, where
// machine and shapes are the same. FailedPrecondition if they are of another oneDNN or instruction
// set, InvalidArgument if the text is damaged; then nothing changes.
Status TakeAlgorithms(const std::string& used);
// The same for a run that continues (empty: nothing is known): a damaged text costs a warning, and
// algorithms are not measured again.
void KeepAlgorithms(const std::string& used);

}  // namespace ringtail

#endif  // RINGTAIL_APPS_TRAINER_CHECKPOINT_NUMERICS_H_
