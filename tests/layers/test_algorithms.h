// The choices of convolution algorithms that all tests of one program share, so that a shape is
// measured once: with the cache file that CTest gives each test.
// Thread-safety: one thread.
#ifndef RINGTAIL_TESTS_LAYERS_TEST_ALGORITHMS_H_
#define RINGTAIL_TESTS_LAYERS_TEST_ALGORITHMS_H_

#include "layers/algorithm_choices.h"

namespace ringtail {

inline AlgorithmChoices* TestAlgorithms() {
  static AlgorithmChoices choices = AlgorithmChoices::FromUserCache();
  return &choices;
}

}  // namespace ringtail

#endif  // RINGTAIL_TESTS_LAYERS_TEST_ALGORITHMS_H_
