// Weights of classes in the training loss, for data of which some classes have many images and
// others few.
//
//   w_c = n n_c^-p / sum_k n_k^(1 - p)        n images, n_c of class c, p = data.class_balance
//
//   p 0    every image counts the same: a class counts as many times as it has images
//   p 0.5  between; a class of 100 times as many images counts 10 times as much
//   p 1    every class counts the same: sklearn's and Keras's "balanced", n / (classes n_c)
//
// The mean weight of the training images is 1, so that loss and learning rate keep their scale.
// Weights in the loss, and not images that are drawn more often: an epoch stays every image once,
// whatever the ranks, and a rare image is not decoded, and learned by heart, a hundred times an
// epoch. Where a batch seldom has one of a class, its gradient comes seldom and large: then a
// larger batch, or p = 0.5. Thread-safety: pure functions.
#ifndef RINGTAIL_DATA_CLASS_BALANCE_H_
#define RINGTAIL_DATA_CLASS_BALANCE_H_

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "data/dataset.h"

namespace ringtail {

// Of the samples `indices`, by class; those without a label are not counted.
std::vector<int64_t> ClassCounts(const Dataset& dataset, std::span<const int64_t> indices);

// "cat 0.52, dog 12.5" of up to ten classes, or "from 0.52 (cat) to 12.5 (dog)"; requires a class
// with images.
std::string DescribeClassWeights(const std::vector<std::string>& class_names,
                                 std::span<const int64_t> counts, double power);

// By class; 1 of a class without images. `power`: 0 .. 1.
std::vector<float> ClassWeights(std::span<const int64_t> counts, double power);

}  // namespace ringtail

#endif  // RINGTAIL_DATA_CLASS_BALANCE_H_
