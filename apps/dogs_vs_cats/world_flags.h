// The flags of `train` for several ranks: those of rank_flags.h, --world, --local-batch and
// --plan.
#ifndef RINGTAIL_APPS_DOGS_VS_CATS_WORLD_FLAGS_H_
#define RINGTAIL_APPS_DOGS_VS_CATS_WORLD_FLAGS_H_

#include <cstdint>
#include <string>

#include "apps/session/world_session.h"
#include "core/status.h"
#include "dist/membership/identity/rank_environment.h"

namespace CLI {
class App;
}

namespace ringtail {

struct WorldFlags {
  RankFlags rank;
  WorldOptions options;
  int64_t local_batch = 0;  // 0: as the config says
  bool balance = false;     // --local-batch auto
  std::string plan;         // --plan: "auto", "config"; empty: as the config says
};

void AddWorldFlags(CLI::App* app, WorldFlags* flags);

}  // namespace ringtail

#endif  // RINGTAIL_APPS_DOGS_VS_CATS_WORLD_FLAGS_H_
