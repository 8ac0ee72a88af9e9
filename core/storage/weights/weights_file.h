// Weights as others publish them: safetensors, or a state dict of PyTorch. Tells by the first bytes
// which it is, whatever the file is called.
// Errors: those of the format, with the file's name; nothing of a file is executed.
// Thread-safety: const after Read. Cost: the file once in memory.
#ifndef RINGTAIL_CORE_STORAGE_WEIGHTS_WEIGHTS_FILE_H_
#define RINGTAIL_CORE_STORAGE_WEIGHTS_WEIGHTS_FILE_H_

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/status.h"
#include "core/storage/safetensors.h"
#include "core/storage/weights/strided_tensor.h"

namespace ringtail {

class WeightsFile {
 public:
  static StatusOr<WeightsFile> Read(const std::string& path);

  const std::map<std::string, StridedTensor>& tensors() const { return tensors_; }
  // Of safetensors; empty otherwise.
  const std::map<std::string, std::string>& metadata() const { return metadata_; }
  // What of the file the tensors are: "state_dict"; empty: the whole.
  const std::string& taken_from() const { return taken_from_; }

 private:
  std::vector<std::byte> bytes_;                // of PyTorch's
  std::optional<SafetensorsFile> safetensors_;  // owns its bytes
  std::map<std::string, StridedTensor> tensors_;
  std::map<std::string, std::string> metadata_;
  std::string taken_from_;
};

}  // namespace ringtail

#endif  // RINGTAIL_CORE_STORAGE_WEIGHTS_WEIGHTS_FILE_H_
