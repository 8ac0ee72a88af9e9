#include "dist/liveness/progress.h"

namespace ringtail {

std::string_view PhaseName(Phase phase) {
  switch (phase) {
    case Phase::kSetUp:
      return "set-up";
    case Phase::kDataWait:
      return "data wait";
    case Phase::kForward:
      return "forward";
    case Phase::kBackward:
      return "backward";
    case Phase::kExchange:
      return "exchange";
    case Phase::kUpdate:
      return "update";
    case Phase::kEvaluation:
      return "evaluation";
    case Phase::kCheckpoint:
      return "checkpoint";
    case Phase::kBlocked:
      return "blocked";
  }
  return "unknown";
}

}  // namespace ringtail
