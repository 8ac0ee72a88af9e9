#include "apps/algorithm_choices.h"

namespace ringtail {

AlgorithmChoices& ProgramAlgorithms() {
  static AlgorithmChoices choices = AlgorithmChoices::FromUserCache();
  return choices;
}

}  // namespace ringtail
