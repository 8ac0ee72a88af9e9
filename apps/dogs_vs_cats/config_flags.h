// The flags that verbs with a config share: --config, --set, --precision, --threads, --batch,
// --image-size.
#ifndef RINGTAIL_APPS_DOGS_VS_CATS_CONFIG_FLAGS_H_
#define RINGTAIL_APPS_DOGS_VS_CATS_CONFIG_FLAGS_H_

#include <cstdint>
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
  std::string config;  // a name or path, as LoadRunConfig takes it
  std::vector<std::string> set;
  int threads = 0;  // 0: train.threads

  // Adds a --set whose value is quoted as a string ("/data/my images").
  void SetString(const std::string& field, const std::string& value);
  void SetNumber(const std::string& field, int64_t value);
};

// For --help: `instead` says what this verb tries before it uses the default config, `otherwise`
// the number of threads without --threads and train.threads.
void AddConfigFlag(CLI::App* app, ConfigFlags* flags, const std::string& instead = "");
void AddSetFlag(CLI::App* app, ConfigFlags* flags);  // and --precision, short for one of its fields
void AddThreadsFlag(CLI::App* app, ConfigFlags* flags,
                    const std::string& otherwise = "the cores that the process may use");

// One training step: --batch, --image-size.
struct StepFlags {
  int64_t batch = 0, image_size = 0;  // 0: the config's
};
void AddStepFlags(CLI::App* app, StepFlags* flags);

struct ComputeThreads {
  std::string words;                 // "2 cores: 2 compute, 2 input (shared)"
  std::unique_ptr<CoreWatch> watch;  // to be kept as long as the program computes
};

// Sets the number of compute threads: --threads, else train.threads, else the cores that the
// process may use, divided among `ranks_here` ranks. Warns if there are more than twice as many
// threads as cores. Starts to watch the cores: a warning is logged once if other programs use them,
// too. ResourceExhausted, naming the limit, if the system does not allow these threads, those that
// read images and `others` more: libgomp would end the process without naming the limit.
StatusOr<ComputeThreads> UseThreads(const ConfigFlags& flags, const RunConfig& config,
                                    int ranks_here = 1, int others = 0);

}  // namespace ringtail

#endif  // RINGTAIL_APPS_DOGS_VS_CATS_CONFIG_FLAGS_H_
