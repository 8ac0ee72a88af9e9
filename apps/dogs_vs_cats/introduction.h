// What `train` says before the first step: machine, ranks, images, network, optimizer, schedule.
#ifndef RINGTAIL_APPS_DOGS_VS_CATS_INTRODUCTION_H_
#define RINGTAIL_APPS_DOGS_VS_CATS_INTRODUCTION_H_

#include <string>

#include "apps/config/run_config.h"
#include "apps/trainer/trainer.h"
#include "apps/world_session.h"
#include "core/status.h"

namespace ringtail {

// To standard output, warnings to the log. Rank 0 alone. `threads`: UseThreads' words.
Status PrintIntroduction(const LoadedConfig& loaded, const std::string& threads,
                         const TrainingData& data, const Trainer& trainer,
                         const WorldSession& session);

}  // namespace ringtail

#endif  // RINGTAIL_APPS_DOGS_VS_CATS_INTRODUCTION_H_
