#include "apps/trainer/update/update_path.h"

#include "apps/trainer/update/allreduce_update.h"

namespace ringtail {

StatusOr<std::unique_ptr<UpdatePath>> UpdatePath::Create(const Generation* generation,
                                                         const ResumePoint& point) {
  return AllreduceUpdate::Create(generation, point);
}

}  // namespace ringtail
