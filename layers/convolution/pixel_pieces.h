// PixelPieces: the pixels of a batch, cut into pieces that a loop works on one after the other
// while they lie in a cache. A plane larger than a piece is cut; of smaller planes, several whole
// ones in samples that follow each other make up a run. Every cut is a function of the shape alone.
#ifndef RINGTAIL_LAYERS_CONVOLUTION_PIXEL_PIECES_H_
#define RINGTAIL_LAYERS_CONVOLUTION_PIXEL_PIECES_H_

#include <algorithm>
#include <cstdint>

namespace ringtail {

class PixelPieces {
 public:
  // Same-sized pieces of one or more samples: pixels [first, first + pixels) of samples
  // [sample, sample + pieces).
  struct Run {
    int64_t sample, first, pixels, pieces;
  };

  PixelPieces() = default;
  // Runs of about `run_pixels` pixels; where planes are cut, in multiples of `group`.
  PixelPieces(int64_t samples, int64_t plane, int64_t run_pixels, int64_t group)
      : samples_(samples), plane_(plane) {
    const int64_t cuts = Ceil(plane, std::max(run_pixels, group));
    piece_ = std::min(Ceil(Ceil(plane, cuts), group) * group, plane);
    per_plane_ = Ceil(plane, piece_);
    per_run_ = per_plane_ > 1 ? 1 : std::max<int64_t>(1, run_pixels / plane);
  }

  int64_t count() const { return samples_ * per_plane_; }
  int64_t piece_pixels() const { return piece_; }           // of all but the last of a plane
  int64_t run_pixels() const { return piece_ * per_run_; }  // at most

  // Calls fn(run, next) for runs that cover pieces [begin, end) of count(); `next`: the run of the
  // next call, or once more the last.
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
  static int64_t Ceil(int64_t n, int64_t divisor) { return (n + divisor - 1) / divisor; }

  int64_t samples_ = 0, plane_ = 0;
  int64_t piece_ = 1, per_plane_ = 1, per_run_ = 1;
};

}  // namespace ringtail

#endif  // RINGTAIL_LAYERS_CONVOLUTION_PIXEL_PIECES_H_
