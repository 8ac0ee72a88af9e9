#include "dist/gradients/dense_reducer.h"

#include "core/sum_of_squares.h"

namespace ringtail {

void DenseReducer::BeginStep(bool measures_squares) {
  measures_squares_ = measures_squares;
  own_squares_ = 0;
}

Status DenseReducer::Reduce(Communicator* ranks, size_t /*bucket*/, std::span<float> gradients) {
  if (measures_squares_) own_squares_ += SumOfSquares(gradients);
  return ranks->AllReduce(gradients);
}

}  // namespace ringtail
