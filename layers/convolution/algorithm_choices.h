// AlgorithmChoices: which algorithm won, for every convolution that was ever measured here.
//
//   key     "AMD EPYC, avx512, 2 threads, oneDNN 2.6.3, kernels 1; forward 32x64x56x56:16 ..."
//   choice  "winograd 4x4", and what each candidate took
//
// The last bits of a result depend on the choice. That is why it is made once: it is remembered in
// a file of the user's cache folder, goes into every checkpoint (Used), and a resumed run takes it
// from there (Merge) before anything is measured.
// File: $XDG_CACHE_HOME/ringtail/convolutions.json, else ~/.cache/ringtail/convolutions.json. A file
// that cannot be read or written costs a warning and the measuring. Processes may share it: what one
// has found is kept by the others.
// Thread-safety: the trainer thread only.
#ifndef RINGTAIL_LAYERS_CONVOLUTION_ALGORITHM_CHOICES_H_
#define RINGTAIL_LAYERS_CONVOLUTION_ALGORITHM_CHOICES_H_

#include <map>
#include <set>
#include <string>
#include <string_view>

#include "core/status.h"

namespace ringtail {

struct AlgorithmChoice {
  std::string algorithm;                // of `seconds`, the one with the least
  std::map<std::string, double> seconds;  // per call, of every candidate
};

class AlgorithmChoices {
 public:
  // Those of this process, with what the cache file holds.
  static AlgorithmChoices& Shared();

  AlgorithmChoices() = default;  // empty and without a file
  explicit AlgorithmChoices(std::string path);

  // Null if nothing is known. Counts as used.
  const AlgorithmChoice* Find(const std::string& key);
  void Add(const std::string& key, AlgorithmChoice choice);

  // All that were found or added, as JSON.
  std::string Used() const;
  // Takes over what Used() wrote, in place of what is known. InvalidArgument, and nothing is taken,
  // if it is not that.
  Status Merge(std::string_view json);
  // Writes the file if anything was added; warns if that fails.
  void Save();

 private:
  std::string path_;
  bool changed_ = false;
  std::map<std::string, AlgorithmChoice> choices_;
  std::set<std::string> used_;
};

}  // namespace ringtail

#endif  // RINGTAIL_LAYERS_CONVOLUTION_ALGORITHM_CHOICES_H_
