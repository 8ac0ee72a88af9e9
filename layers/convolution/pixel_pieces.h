// PixelPieces: the pixels of a batch, cut into pieces that a loop works on one after another while
// they lie in a cache. A plane larger than a piece is cut; of smaller planes, several whole ones in
// consecutive samples make up a run. Every cut is a function of the shape alone.
// Thread-safety: immutable.
#ifndef RINGTAIL_LAYERS_CONVOLUTION_PIXEL_PIECES_H_
#define RINGTAIL_LAYERS_CONVOLUTION_PIXEL_PIECES_H_

#include <algorithm>
#include <cstdint>

#include "core/round.h"

namespace ringtail {

class PixelPieces {
 public:
  // Pieces of the same size of one or more samples: pixels [first, first + pixels) of samples
  // [sample, sample + pieces).
  struct Run {
    int64_t sample, first, pixels, pieces;
  };

  PixelPieces() = default;
  // Runs of about `run_pixels` pixels; where planes are cut, in multiples of `group`.
  PixelPieces(int64_t samples, int64_t plane, int64_t run_pixels, int64_t group)
      : samples_(samples), plane_(plane) {
    const int64_t cuts = CeilDivide(plane, std::max(run_pixels, group));
    piece_ = std::min(RoundUp(CeilDivide(plane, cuts), group), plane);
    per_plane_ = CeilDivide(plane, piece_);
    per_run_ = per_plane_ > 1 ? 1 : std::max<int64_t>(1, run_pixels / plane);
  }

  int64_t count() const { return samples_ * per_plane_; }
  int64_t piece_pixels() const { return piece_; }           // the last of a plane may have fewer
  int64_t run_pixels() const { return piece_ * per_run_; }  // at most

  // Calls fn(run, next) for runs that cover pieces [begin, end) of count(); `next`: the run of the
  // next call; in the last call, the last run again.
  template <typename Function>
  void ForEachRun(int64_t begin, int64_t end, const Function& fn) const {
    for (int64_t i = begin; i < end; i += per_run_) {
      fn(RunAt(i, end), RunAt(i + per_run_ < end ? i + per_run_ : i, end));
    }
  }

 private:
  Run RunAt(int64_t piece, int64_t end) const {
    const int64_t first = piece % per_plane_ * piece_;
    return {.sample = piece / per_plane_,
            .first = first,
            .pixels = std::min(piece_, plane_ - first),
            .pieces = std::min(per_run_, end - piece)};
  }

  int64_t samples_ = 0, plane_ = 0;
  int64_t piece_ = 1, per_plane_ = 1, per_run_ = 1;
};

}  // namespace ringtail

#endif  // RINGTAIL_LAYERS_CONVOLUTION_PIXEL_PIECES_H_
