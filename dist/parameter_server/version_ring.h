// VersionRing: the weights that pushes under way were computed with, so that a rule can compare
// them with those of now.
//
//   slots 3    pull of 7   pull of 8   push of 7   pull of 9   pull of 10   pull of 11
//              [7| | ]     [7|8| ]     [ |8| ]     [9|8| ]     [9|8|10]     [9|11|10]: 8 gives way
//
// A version is kept from the pull that takes it until the pushes of all who took it; one that is
// taken twice is kept once. If all slots are taken, the oldest version gives way, and a push that
// comes with it later is refused. So memory has a bound that does not depend on the number of
// workers, and a slot for each pull under way is always enough, however slow a worker is: the last
// `slots` versions would not be, for a worker at a fifth of the speed of seven others falls 35
// updates behind.
//
// In 16 bits (bf16) a slot has half the size. If workers pull 16 bits they compute with just these
// values. If they pull floats, each value kept is off by up to 2^-9 of itself, which may be
// more than several updates change.
// Thread-safety: none. Memory: elements * 4 or 2 bytes for each slot once it is used.
// Cost: Keep of a version that is not there, a copy; the others, a look at each slot.
#ifndef RINGTAIL_DIST_PARAMETER_SERVER_VERSION_RING_H_
#define RINGTAIL_DIST_PARAMETER_SERVER_VERSION_RING_H_

#include <cstdint>
#include <span>
#include <vector>

#include "core/aligned_buffer.h"

namespace ringtail {

class VersionRing {
 public:
  enum class Format { kFloat, kBf16 };
  VersionRing(int64_t elements, int slots, Format format);

  // One more holds `version`, whose weights are `values`.
  void Keep(int64_t version, std::span<const float> values);
  // One fewer holds it. Nothing happens if it has given way.
  void Release(int64_t version);
  bool Has(int64_t version) const { return Find(version) != nullptr; }
  // Elements [begin, begin + out.size()) of a version that is there.
  void Read(int64_t version, int64_t begin, std::span<float> out) const;

  int64_t given_way() const { return given_way_; }  // versions that were still held
  int64_t bytes() const;                            // of slots that were used

 private:
  struct Slot {
    int64_t version = 0;
    int holders = 0;  // 0: free
    AlignedBuffer values;
  };
  const Slot* Find(int64_t version) const;
  Slot* FreeSlot();

  const int64_t elements_;
  const Format format_;
  std::vector<Slot> slots_;
  int64_t given_way_ = 0;
};

}  // namespace ringtail

#endif  // RINGTAIL_DIST_PARAMETER_SERVER_VERSION_RING_H_
