// AlgorithmChoices: which algorithm won, for every problem that was ever measured here.
//
//   key     "AMD EPYC, avx512, 2 threads; forward 32x64x56x56:16 to 32x64x56x56:16, window 3x3 ..."
//   choice  "winograd 4x4", and what each candidate took
//
// So is the precision that a network's step is faster in (apps/trainer/decide_precision.h).
// The last bits of a result depend on the choice. That is why it is made once: it is remembered in
// a file of the user's cache folder, goes into every checkpoint (Used), and a resumed run keeps it
// (KeepAll) before anything is measured. Measurements of other versions of oneDNN or of our kernels
// (`versions`) are ignored; so is one that lacks an algorithm of today, unless the run keeps it
// (IsKept).
// Who owns it: a program has one and hands it to its nets (NetOptions::algorithms); layers look up
// and add, the net saves.
// File: JSON. One that cannot be read or written costs a warning and the measuring. Processes may
// share it and keep what others have found; two that save at the same instant may lose an entry,
// which is then measured again.
// Thread-safety: the trainer thread only.
#ifndef RINGTAIL_LAYERS_ALGORITHM_CHOICES_H_
#define RINGTAIL_LAYERS_ALGORITHM_CHOICES_H_

#include <map>
#include <set>
#include <string>
#include <string_view>

#include "core/status.h"

namespace ringtail {

struct AlgorithmChoice {
  std::string algorithm;                  // of `seconds`, the one with the least
  std::map<std::string, double> seconds;  // per call, of every candidate
};

// A choice as `time` and `summary` print it.
struct AlgorithmTimings {
  std::string direction;  // "forward", "backward-data", "backward-weights", "backward"
  std::string chosen;     // of `seconds`
  std::map<std::string, double> seconds;  // per call, by algorithm
};

class AlgorithmChoices {
 public:
  // With the file $XDG_CACHE_HOME/ringtail/convolutions.json, else ~/.cache/ringtail/..., and the
  // versions of this program.
  static AlgorithmChoices FromUserCache();

  // `path` empty: without a file.
  AlgorithmChoices(std::string path, std::string versions);

  // Null if nothing is known. Counts as used.
  const AlgorithmChoice* Find(const std::string& key);
  // The same without counting as used.
  const AlgorithmChoice* Peek(const std::string& key) const;
  // Whether it is a choice of this run, which holds whatever was measured for it.
  bool IsKept(const std::string& key) const { return kept_.contains(key); }
  // Adds what was measured. Warns, once, if the run was resumed and so loses its last bits.
  void Add(const std::string& key, AlgorithmChoice choice);
  // A choice of this run alone, which precedes those that are measured and is not saved.
  void Keep(const std::string& key, AlgorithmChoice choice);

  // All that were found or added, as JSON.
  std::string Used() const;
  // Keeps all that Used() wrote. An error, and nothing is kept, if it is not that or of other
  // versions.
  Status KeepAll(std::string_view json);
  // The run was resumed with what was kept: what it measures from now on differs from what it
  // started with.
  void Resume() { resumed_ = true; }
  // Writes the file if anything was added; warns if that fails.
  void Save();

 private:
  std::string path_, versions_;
  bool resumed_ = false;
  std::map<std::string, AlgorithmChoice> kept_, measured_;
  std::set<std::string> used_, added_;  // keys; `added_`: since the file was written
};

}  // namespace ringtail

#endif  // RINGTAIL_LAYERS_ALGORITHM_CHOICES_H_
