// The program's choices of convolution algorithms (layers/algorithm_choices.h): one for all its
// nets, with the cache file of this user.
// Thread-safety: the trainer thread only.
#ifndef RINGTAIL_APPS_ALGORITHM_CHOICES_H_
#define RINGTAIL_APPS_ALGORITHM_CHOICES_H_

#include "layers/algorithm_choices.h"

namespace ringtail {

AlgorithmChoices& ProgramAlgorithms();

}  // namespace ringtail

#endif  // RINGTAIL_APPS_ALGORITHM_CHOICES_H_
