// A state dict that PyTorch has saved (torch.save, since PyTorch 1.6): a ZIP archive with a pickle
// of names and shapes, and a member for each storage.
//
//   net/data.pkl     {"fc.weight": _rebuild_tensor_v2(storage 0, offset, size, strides, ...), ...}
//   net/byteorder    "little"
//   net/data/0       the elements of storage 0
//
// Nothing of the pickle is executed (core/storage/weights/pickle.h). The state dict is the file's
// dict, or, in a checkpoint of a training program, what it has under one of the usual names:
// state_dict_ema, model_ema, state_dict, model_state_dict, model.
// Errors: DataLoss or InvalidArgument with the reason and what to do, without the file's name.
// Thread-safety: functions without state. Cost: O(tensors).
#ifndef RINGTAIL_CORE_STORAGE_WEIGHTS_TORCH_FILE_H_
#define RINGTAIL_CORE_STORAGE_WEIGHTS_TORCH_FILE_H_

#include <cstddef>
#include <map>
#include <span>
#include <string>

#include "core/status.h"
#include "core/storage/weights/strided_tensor.h"

namespace ringtail {

// Whether the bytes are a file of torch.save, of any version.
bool LooksLikeTorch(std::span<const std::byte> bytes);

struct TorchStateDict {
  std::map<std::string, StridedTensor> tensors;  // views of the file's bytes, all inside
  std::string taken_from;                        // "state_dict"; empty: the file is the dict
};
StatusOr<TorchStateDict> ParseTorch(std::span<const std::byte> bytes);

}  // namespace ringtail

#endif  // RINGTAIL_CORE_STORAGE_WEIGHTS_TORCH_FILE_H_
