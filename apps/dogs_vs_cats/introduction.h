// What `train` says before the first step: machine, ranks, images, network, optimizer, schedule.
#ifndef RINGTAIL_APPS_DOGS_VS_CATS_INTRODUCTION_H_
#define RINGTAIL_APPS_DOGS_VS_CATS_INTRODUCTION_H_

#include <string>

#include "apps/session/world_session.h"
#include "apps/trainer/generation.h"
#include "core/status.h"

namespace ringtail {

// To standard output, warnings to the log. Rank 0 alone. `threads`: UseThreads' words.
Status PrintIntroduction(const Generation& generation, const std::string& threads,
                         const WorldSession& session);

}  // namespace ringtail

#endif  // RINGTAIL_APPS_DOGS_VS_CATS_INTRODUCTION_H_
