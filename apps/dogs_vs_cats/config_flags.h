// The flags that all verbs with a config share: --config, --set, --threads.
#ifndef RINGTAIL_APPS_DOGS_VS_CATS_CONFIG_FLAGS_H_
#define RINGTAIL_APPS_DOGS_VS_CATS_CONFIG_FLAGS_H_

#include <memory>
#include <string>
#include <vector>

#include "apps/config/run_config.h"
#include "core/machine/core_watch.h"
#include "core/status.h"

namespace CLI {
class App;
}

namespace ringtail {

struct ConfigFlags {
  std::string config;  // path; empty: built in
  std::vector<std::string> set;
  int threads = 0;  // 0: what train.threads says

  // Adds a --set whose value is quoted as a string ("/data/my images").
  void SetString(const std::string& field, const std::string& value);
  void SetNumber(const std::string& field, int64_t value);
};

// `instead`, `otherwise`: what this verb does before it falls back on the config that is built in,
// and where nobody says how many threads; for --help.
void AddConfigFlag(CLI::App* app, ConfigFlags* flags, const std::string& instead = "");
void AddSetFlag(CLI::App* app, ConfigFlags* flags);
void AddThreadsFlag(CLI::App* app, ConfigFlags* flags,
                    const std::string& otherwise = "the cores that the process may use");

struct ComputeThreads {
  std::string words;                 // "2 cores: 2 compute, 2 input (shared)"
  std::unique_ptr<CoreWatch> watch;  // to be kept as long as there is something to compute
};

// Sets the number of compute threads from --threads, else train.threads, else the cores that the
// process may use, of those that `ranks_here` share. Warns of more than twice as many as there are
// cores. From now on they are watched, and a warning says once if other programs use the cores, too.
// ResourceExhausted, with the limit, if these threads, those that read images and `others` cannot be
// started: libgomp would end the process without a word of which limit it was.
StatusOr<ComputeThreads> UseThreads(const ConfigFlags& flags, const RunConfig& config,
                                    int ranks_here = 1, int others = 0);

}  // namespace ringtail

#endif  // RINGTAIL_APPS_DOGS_VS_CATS_CONFIG_FLAGS_H_
