// Python's pickle format, read as data. Nothing is imported, called or executed: a name of Python
// stays a name, and a call of it a node with its arguments.
//
//   torch.save({"fc.bias": tensor})  ->  kDict
//                                          kString "fc.bias"
//                                          kCall   kGlobal "torch._utils._rebuild_tensor_v2"
//                                                  kTuple  kPersistent ..., 0, (2,), (1,), ...
//
// The opcodes are those that pickles of protocol 2 to 5 of plain containers have (Python's
// pickletools documents each); any other is an error that names it. collections.OrderedDict is a
// kDict; state that an object is given (BUILD) is dropped. A hostile stream never causes an access
// out of bounds; memory is at most about 100 bytes per byte of the stream, of which there are at
// most 16 MiB, and nothing is recursive. A value may contain itself: a walk of the tree must bound its
// depth. Errors: DataLoss with the byte and the reason. Thread-safety: const after Parse.
// Cost: one pass.
#ifndef RINGTAIL_CORE_STORAGE_WEIGHTS_PICKLE_H_
#define RINGTAIL_CORE_STORAGE_WEIGHTS_PICKLE_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/status.h"

namespace ringtail {

inline constexpr size_t kMaxPickleBytes = size_t{16} << 20;
inline constexpr size_t kMaxPickleValues = size_t{1} << 20;

struct PickleValue {
  enum class Kind {
    kNone,
    kBool,        // number
    kInt,         // number
    kFloat,       // its value is dropped
    kString,      // text; bytes, too
    kTuple,       // items
    kList,        // items
    kDict,        // items: key, value, key, value, ...
    kGlobal,      // text: "collections.OrderedDict"
    kCall,        // items: what is called, its arguments
    kPersistent,  // items: an identifier, for what is stored elsewhere
  };
  Kind kind = Kind::kNone;
  int64_t number = 0;
  std::string text = {};
  std::vector<uint32_t> items = {};  // indices of values
};

class Pickle {
 public:
  static StatusOr<Pickle> Parse(std::span<const std::byte> bytes);

  const PickleValue& root() const { return values_[root_]; }
  const PickleValue& operator[](uint32_t index) const { return values_[index]; }
  // Whether `value` calls the Python object of this name.
  bool Calls(const PickleValue& value, std::string_view name) const;
  // The value of a key of a dict; null if it has none.
  const PickleValue* Find(const PickleValue& dict, std::string_view key) const;

 private:
  friend class PickleMachine;
  std::vector<PickleValue> values_;
  uint32_t root_ = 0;
};

}  // namespace ringtail

#endif  // RINGTAIL_CORE_STORAGE_WEIGHTS_PICKLE_H_
