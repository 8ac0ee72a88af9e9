// What a step's last bits depend on beside config, images and step: the number of compute threads
// (how sums are divided), the instruction set, and which algorithm each convolution uses. A
// checkpoint says what it was written with.
// Thread-safety: functions without state.
#ifndef RINGTAIL_APPS_TRAINER_CHECKPOINT_NUMERICS_H_
#define RINGTAIL_APPS_TRAINER_CHECKPOINT_NUMERICS_H_

#include <map>
#include <string>

#include "core/status.h"

namespace ringtail {

struct Numerics {
  int threads = 0;  // 0: not known
  std::string isa;  // "avx512"; empty: not known
  bool operator==(const Numerics&) const = default;
  std::string Describe() const;  // "2 threads, avx512"
};

// What says how fast a rank is, and which algorithms are: "AMD EPYC 9R14, 2 threads, avx512".
std::string ThisMachine();

Numerics CurrentNumerics();
// With the algorithms of all nets so far.
void AddNumerics(const Numerics& numerics, std::map<std::string, std::string>* metadata);
Numerics ReadNumerics(const std::map<std::string, std::string>& metadata);
// Convolutions of nets set up from now on use the algorithms of the run that wrote `metadata`,
// where machine and shapes are the same. What cannot be read costs a warning.
void KeepAlgorithms(const std::map<std::string, std::string>& metadata);

// The same for another rank: what it uses, and to use that here.
std::string UsedAlgorithms();
Status TakeAlgorithms(const std::string& used);

}  // namespace ringtail

#endif  // RINGTAIL_APPS_TRAINER_CHECKPOINT_NUMERICS_H_
