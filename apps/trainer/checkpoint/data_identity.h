// DataIdentity: which images a run learns from, as its checkpoints keep it.
#ifndef RINGTAIL_APPS_TRAINER_CHECKPOINT_DATA_IDENTITY_H_
#define RINGTAIL_APPS_TRAINER_CHECKPOINT_DATA_IDENTITY_H_

#include <optional>
#include <string>

namespace ringtail {

struct DataIdentity {
  std::string fingerprint;              // 16 hex digits: keys and labels of both parts of the split
  std::optional<std::string> contents;  // the same of the files' contents; none: not known
  std::optional<std::string> counts;    // in words; none: not known
};

}  // namespace ringtail

#endif  // RINGTAIL_APPS_TRAINER_CHECKPOINT_DATA_IDENTITY_H_
