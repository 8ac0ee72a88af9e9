#include "apps/emulator/batch_source.h"

#include <algorithm>
#include <utility>

#include "apps/trainer/update/batch_view.h"
#include "core/check.h"

namespace ringtail {

BatchSource::BatchSource(std::unique_ptr<DataLoader> loader, int64_t image_floats)
    : loader_(std::move(loader)), image_floats_(image_floats) {}

BatchView BatchSource::Kept::view() const {
  return {.images = images.floats().data(),
          .labels = labels,
          .soft = {.other_labels = other_labels, .weights = label_weights}};
}

BatchView BatchSource::View(const BatchView& batch, ElementRange rows) const {
  RT_CHECK(rows.end() <= std::ssize(batch.labels), "the rows must be the batch's");
  return {.images = batch.images + rows.offset * image_floats_,
          .labels = batch.labels.subspan(static_cast<size_t>(rows.offset),
                                         static_cast<size_t>(rows.count)),
          .soft = batch.soft.Rows(rows.offset, rows.count)};
}

StatusOr<BatchView> BatchSource::Rows(int64_t batch, ElementRange rows) {
  const auto kept = kept_.find(batch);
  if (kept != kept_.end()) {
    kept->second.left -= rows.count;
    if (kept->second.left > 0) return View(kept->second.view(), rows);
    last_ = std::move(kept->second);
    kept_.erase(kept);
    return View(last_.view(), rows);
  }
  if (batch != current_) {
    RT_RETURN_IF_ERROR(batch < next_ ? LoadAgain(batch) : AdvanceTo(batch));
  }
  left_ -= rows.count;
  return View(ViewOf(loaded_), rows);
}

// Keeps what is passed on the way.
Status BatchSource::AdvanceTo(int64_t batch) {
  if (next_ < 0) next_ = batch;
  for (; next_ <= batch; ++next_) {
    KeepCurrent();
    RT_RETURN_IF_ERROR(Load(next_));
    left_ = std::ssize(loaded_.labels);
  }
  return OkStatus();
}

// No other worker waits for its rows.
Status BatchSource::LoadAgain(int64_t batch) {
  KeepCurrent();
  left_ = 0;
  return Load(batch);
}

Status BatchSource::Load(int64_t batch) {
  const int64_t per_epoch = loader_->steps_per_epoch();
  if (batch != current_ + 1) loader_->Seek(batch / per_epoch, batch % per_epoch);
  RT_ASSIGN_OR_RETURN(loaded_, loader_->Next());
  current_ = batch;
  return OkStatus();
}

void BatchSource::KeepCurrent() {
  if (left_ <= 0) return;
  Kept kept{.images = AlignedBuffer(loaded_.labels.size() * image_floats_ * sizeof(float)),
            .labels = {loaded_.labels.begin(), loaded_.labels.end()},
            .other_labels = {loaded_.other_labels.begin(), loaded_.other_labels.end()},
            .label_weights = {loaded_.label_weights.begin(), loaded_.label_weights.end()},
            .left = left_};
  std::copy_n(loaded_.images, std::ssize(loaded_.labels) * image_floats_,
              kept.images.floats().begin());
  kept_[current_] = std::move(kept);
}

void BatchSource::Forget(int64_t batch) {
  kept_.erase(kept_.begin(), kept_.lower_bound(batch));
  if (current_ < batch) left_ = 0;
}

}  // namespace ringtail
