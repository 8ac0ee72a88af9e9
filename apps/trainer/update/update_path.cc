#include "apps/trainer/update/update_path.h"

#include "apps/trainer/asynchronous/server_update.h"
#include "apps/trainer/local/local_update.h"
#include "apps/trainer/update/allreduce_update.h"
#include "dist/config_check.h"
#include "dist/parameter_server/rule_choice.h"

namespace ringtail {

StatusOr<std::unique_ptr<UpdatePath>> UpdatePath::Create(const Generation* generation,
                                                         const ResumePoint& point) {
  const DistConfig& config = generation->config().dist();
  if (UsesServers(config.asynchronous())) return ServerUpdate::Create(generation, point);
  return UsesLocalRounds(config) ? LocalUpdate::Create(generation, point)
                                 : AllreduceUpdate::Create(generation, point);
}

}  // namespace ringtail
