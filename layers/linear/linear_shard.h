// LinearShard: which outputs of a linear layer a rank holds, where ranks divide the layer.
//
//   M outputs, 3 ranks, M = 8:   rank 0  0 1 2      first = floor(rank M / ranks)
//                                rank 1  3 4
//                                rank 2  5 6 7  (at most ceil(M / ranks) of them)
// Thread-safety: immutable.
#ifndef RINGTAIL_LAYERS_LINEAR_LINEAR_SHARD_H_
#define RINGTAIL_LAYERS_LINEAR_LINEAR_SHARD_H_

#include <cstdint>

namespace ringtail {

struct LinearShard {
  int rank = 0, ranks = 1;
  int64_t pieces = 1;  // in which a batch travels; divides its rows

  bool is_whole() const { return ranks == 1; }
  int64_t First(int64_t outputs, int of_rank) const { return outputs * of_rank / ranks; }
  int64_t Count(int64_t outputs, int of_rank) const {
    return First(outputs, of_rank + 1) - First(outputs, of_rank);
  }
  int64_t first(int64_t outputs) const { return First(outputs, rank); }
  int64_t count(int64_t outputs) const { return Count(outputs, rank); }
  int64_t most(int64_t outputs) const { return (outputs + ranks - 1) / ranks; }
};

}  // namespace ringtail

#endif  // RINGTAIL_LAYERS_LINEAR_LINEAR_SHARD_H_
