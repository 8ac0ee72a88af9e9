#include "data/manifest.h"

#include "core/random.h"

namespace ringtail {

uint64_t DatasetFingerprint(const Dataset& dataset, const std::vector<int64_t>& indices) {
  RngKey hash = RngKey(0).With(dataset.class_names().size());
  for (const std::string& name : dataset.class_names()) hash = hash.With(name);
  for (const int64_t i : indices) {
    const Sample& sample = dataset.samples()[i];
    hash = hash.With(sample.key).With(static_cast<uint64_t>(sample.label));
  }
  return hash.bits();
}

}  // namespace ringtail
