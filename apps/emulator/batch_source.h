// BatchSource: the rows of global batches for workers that are not at the same step.
//
//   loader       batch 5 | 6 | 7          reads every global batch once, whole, in order
//   worker 0     takes rows 0..7 of 7     from the loader's batch, without a copy
//   worker 3     takes rows 24..31 of 5   from a copy that was kept because not all rows were taken
//
// Rows are those that a real rank loads (data/loader.h: augmentation is keyed by the image, not by
// who loads it). A batch is kept until all its rows are taken, or Forget says that no worker comes.
// Rows that are taken once more, as those of a gradient that was thrown away, are loaded alone again.
// Thread-safety: the trainer thread. Memory: a batch for each step between the fastest and the
// slowest worker. Errors: those of the loader.
#ifndef RINGTAIL_APPS_EMULATOR_BATCH_SOURCE_H_
#define RINGTAIL_APPS_EMULATOR_BATCH_SOURCE_H_

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "core/aligned_buffer.h"
#include "core/status.h"
#include "data/loader.h"
#include "dist/collectives/plan.h"
#include "layers/net/net.h"

namespace ringtail {

class BatchSource {
 public:
  // `loader` is in mode kTrain; its batches are global batches of images with `image_floats`.
  BatchSource(std::unique_ptr<DataLoader> loader, int64_t image_floats);

  // Rows of global batch `batch` of the run. Valid until the next call.
  StatusOr<BatchView> Rows(int64_t batch, ElementRange rows);
  // No batch will be asked for before `batch`.
  void Forget(int64_t batch);

 private:
  struct Kept {
    AlignedBuffer images;
    std::vector<int32_t> labels, other_labels;
    std::vector<std::array<float, 2>> label_weights;
    int64_t left = 0;  // rows that no worker has taken
    BatchView view() const;
  };

  Status AdvanceTo(int64_t batch);
  Status LoadAgain(int64_t batch);
  Status Load(int64_t batch);  // becomes current_
  void KeepCurrent();
  BatchView View(const BatchView& batch, ElementRange rows) const;

  const std::unique_ptr<DataLoader> loader_;
  const int64_t image_floats_;
  int64_t current_ = -1;  // the loader's last batch; -1: none
  int64_t left_ = 0;      // its rows that no worker has taken
  int64_t next_ = -1;     // the first batch that was never loaded; -1: none was
  LoadedBatch loaded_;
  std::map<int64_t, Kept> kept_;
  Kept last_;  // taken whole, but still in use
};

}  // namespace ringtail

#endif  // RINGTAIL_APPS_EMULATOR_BATCH_SOURCE_H_
