// The embedded data set: drawn cats and dogs as JPEG files in Kaggle's layout.
//
//   DIR/train/cat.0.jpg .. cat.(n-1).jpg, DIR/train/dog.0.jpg ..     n: half of `images`
//   DIR/test1/1.jpg .. test_images.jpg                               unlabelled, either animal
//
// Each image is a function of (seed, class, number) alone: the same for any number of threads,
// and a larger set holds the smaller one. Cats and dogs share fur, colours, poses, backgrounds,
// noise and light and differ by shape only, so that a linear model on the pixels stays near chance,
// and a convolutional network learns the difference. A folder appears under its name when all its
// images are in it; an earlier run that was cut off leaves a folder NAME.partial, which the next
// run replaces. Cost: some milliseconds per image and core. Thread-safety: from the trainer
// thread only.
#ifndef RINGTAIL_APPS_SYNTHESIZE_SYNTHESIZE_H_
#define RINGTAIL_APPS_SYNTHESIZE_SYNTHESIZE_H_

#include <cstdint>
#include <string>

#include "core/status.h"

namespace ringtail {

struct SynthesizeOptions {
  std::string output;       // DIR; made if it does not exist
  int64_t images = 4000;    // labelled ones; >= 2; cats get the odd one
  int64_t test_images = 0;  // unlabelled ones; 0: no DIR/test1
  uint64_t seed = 1;
};

// InvalidArgument for counts out of range, AlreadyExists if DIR/train (or DIR/test1, if asked for)
// is there already: images are never overwritten or mixed.
Status Synthesize(const SynthesizeOptions& options);

}  // namespace ringtail

#endif  // RINGTAIL_APPS_SYNTHESIZE_SYNTHESIZE_H_
