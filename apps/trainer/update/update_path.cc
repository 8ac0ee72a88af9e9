#include "apps/trainer/update/update_path.h"

#include "apps/trainer/local/local_update.h"
#include "apps/trainer/update/allreduce_update.h"
#include "dist/config_check.h"

namespace ringtail {

StatusOr<std::unique_ptr<UpdatePath>> UpdatePath::Create(const Generation* generation,
                                                         const ResumePoint& point) {
  return UsesLocalRounds(generation->config().dist()) ? LocalUpdate::Create(generation, point)
                                                      : AllreduceUpdate::Create(generation, point);
}

}  // namespace ringtail
