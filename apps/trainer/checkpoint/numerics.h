// Numerics: what the last bits of a step depend on beside config, images and step: the number of
// compute threads (how sums are divided), the instruction set, and the algorithm of each
// convolution. Checkpoints keep all three.
// Thread-safety: functions without state.
#ifndef RINGTAIL_APPS_TRAINER_CHECKPOINT_NUMERICS_H_
#define RINGTAIL_APPS_TRAINER_CHECKPOINT_NUMERICS_H_

#include <string>

#include "core/status.h"

namespace ringtail {

struct Numerics {
  int threads = 0;  // 0: not known
  std::string isa;  // "avx512"; empty: not known
  bool operator==(const Numerics&) const = default;
  std::string Describe() const;  // "2 threads, avx512"
};

// What the speed of a rank, and of each algorithm, depends on: "AMD EPYC 9R14, 2 threads, avx512".
std::string ThisMachine();

Numerics CurrentNumerics();

// The convolution algorithms of all nets so far, as text.
std::string UsedAlgorithms();
// Convolutions of nets set up from now on use those that another rank or run has `used`, where
// machine and shapes are the same. DataLoss if the text is damaged.
Status TakeAlgorithms(const std::string& used);
// The same for a run that continues (empty: nothing is known): a damaged text costs a warning, and
// algorithms are not measured again.
void KeepAlgorithms(const std::string& used);

}  // namespace ringtail

#endif  // RINGTAIL_APPS_TRAINER_CHECKPOINT_NUMERICS_H_
