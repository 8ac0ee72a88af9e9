// MeanCosine: whether what ranks have changed in a round points in one direction, from norms alone:
//
//   |sum of d_i|^2 = sum of |d_i|^2 + the products d_i d_j of all pairs, twice
//
// which holds if the sum is that of the d_i: not if they travelled through codecs, whose errors and
// residuals are in the sum. Where it holds, nothing more than a number per rank has to travel.
// Thread-safety: values.
#ifndef RINGTAIL_APPS_TRAINER_LOCAL_MEAN_COSINE_H_
#define RINGTAIL_APPS_TRAINER_LOCAL_MEAN_COSINE_H_

#include <optional>

namespace ringtail {

// Of d_i = c_i D_i (local_round.h) of all ranks.
struct DifferenceNorms {
  double squares = 0, norms = 0;  // sums of |d_i|^2, |d_i|

  void Add(double weight, double square);  // c_i, |D_i|^2
};

// The mean over pairs of ranks, weighted by their norms: -1 .. 1. `squares_of_sum`: |sum of d_i|^2.
// None if there is no pair of ranks that have changed anything, beside rounding.
std::optional<double> MeanCosine(const DifferenceNorms& all, double squares_of_sum);

}  // namespace ringtail

#endif  // RINGTAIL_APPS_TRAINER_LOCAL_MEAN_COSINE_H_
