// Dataset: the list of images of a folder, list file or packed file, with labels and names.
//
// A sample is identified by its key, the image's name relative to the folder that holds the layout
// ("cat.7.jpg", "Cat/7.jpg"; valid UTF-8, other bytes appear as "\xE9"). Lists are sorted by
// natural order of the key ("cat.2" < "cat.10"), so they are the same on every machine; the split
// and all randomness depend on (seed, key), never on directory order. Thread-safety: const after
// Open; any thread may call Read.
#ifndef RINGTAIL_DATA_DATASET_H_
#define RINGTAIL_DATA_DATASET_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/status.h"
#include "data/data.pb.h"

namespace ringtail {

// The part of a data set that a sample belongs to, if the folders tell (train/ beside validation/).
enum class SplitPart : uint8_t { kByConfig = 0, kTrain = 1, kValidation = 2 };

struct Sample {
  std::string key;     // unique; also the name in messages
  int32_t label = -1;  // index into class_names; -1: unlabelled (a test set)
  SplitPart part = SplitPart::kByConfig;
};

class Dataset {
 public:
  virtual ~Dataset() = default;
  // Detects the layout (DataConfig.layout AUTO) and lists the images; reads no image, of a packed
  // file only the index. NotFound, with the names that were looked for, if there are no images.
  static StatusOr<std::unique_ptr<Dataset>> Open(const DataConfig& config);

  virtual const std::vector<Sample>& samples() const = 0;
  virtual const std::vector<std::string>& class_names() const = 0;  // Kaggle: cat = 0, dog = 1
  // Folders without images beside the class folders; names as in messages.
  virtual std::vector<std::string> empty_classes() const { return {}; }
  virtual std::string Describe() const = 0;  // "Kaggle layout, /data: 12,500 cat, 12,500 dog"
  // The encoded bytes of sample i, at most max_file_mib.
  virtual StatusOr<std::vector<std::byte>> Read(int64_t i) const = 0;
  // The number of these bytes, without reading them; -1 if unknown. Cost: a system call.
  virtual int64_t FileBytes(int64_t /*i*/) const { return -1; }
};

}  // namespace ringtail

#endif  // RINGTAIL_DATA_DATASET_H_
