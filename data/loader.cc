#include "data/loader.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <deque>
#include <map>
#include <utility>

#include "core/aligned_buffer.h"
#include "core/logging.h"
#include "core/machine/memory_limit.h"
#include "core/machine/thread_budget.h"
#include "core/mutex.h"
#include "core/stopwatch.h"
#include "core/trace.h"
#include "data/class_balance.h"
#include "data/image_source.h"
#include "data/row_work.h"
#include "data/sampler.h"
#include "data/worker_pool.h"

namespace ringtail {
namespace {

// One batch of the ring. Each row is written by one worker; the batch is full at `rows_left` 0.
struct Slot {
  AlignedBuffer pixels;  // (batch, 3, S, S) f32
  std::vector<int32_t> labels, other_labels;
  std::vector<std::array<float, 2>> label_weights;
  std::vector<int64_t> samples;
  std::vector<RowWork> work;      // its rows
  std::vector<int64_t> partners;  // by `work`: the sample at its partner_position, or -1
  int64_t epoch = 0, step_in_epoch = 0;
  int64_t rows = 0;           // of the batch that it holds
  int64_t rows_left = 0;      // guarded by the loader's mutex
  std::vector<BadImage> bad;  // guarded by the loader's mutex
};

class PrefetchingLoader : public DataLoader {
 public:
  PrefetchingLoader(const Dataset* dataset, std::vector<int64_t> indices, const DataConfig& config,
                    const LoaderOptions& options, int workers)
      : dataset_(dataset),
        indices_(std::move(indices)),
        bad_images_config_(config.bad_images()),
        augment_(options.mode == LoaderMode::kTrain ? config.augment() : AugmentConfig()),
        options_(options),
        sharding_{.shards = config.shards(), .batch = options.global_batch},
        row_floats_(kChannels * options.image_size * options.image_size),
        source_(dataset, config, options),
        buffers_(workers),
        partner_pixels_(workers),
        pool_(workers) {
    if (options.mode == LoaderMode::kTrain && config.class_balance() > 0) {
      class_weights_ = ClassWeights(ClassCounts(*dataset, indices_), config.class_balance());
    }
    for (int i = 0; i < config.prefetch_batches(); ++i) {
      auto slot = std::make_unique<Slot>();
      slot->pixels = AlignedBuffer(options.batch * row_floats_ * sizeof(float));
      slot->labels.resize(options.batch);
      slot->other_labels.resize(options.batch);
      slot->label_weights.resize(options.batch);
      slot->samples.resize(options.batch);
      free_.push_back(std::move(slot));
    }
  }

  // Before the members that rows use are destroyed.
  ~PrefetchingLoader() override { pool_.Cancel(); }

  int64_t steps_per_epoch() const override {
    const int64_t global_batch = options_.global_batch;
    const auto count = static_cast<int64_t>(indices_.size());
    return options_.mode == LoaderMode::kTrain ? count / global_batch
                                               : (count + global_batch - 1) / global_batch;
  }

  void Request(int64_t epoch, int64_t first, int64_t rows) override;
  StatusOr<LoadedBatch> Next() override;
  void Seek(int64_t epoch, int64_t step_in_epoch) override;

  std::vector<BadImage> bad_images() const override {
    std::vector<BadImage> result;
    for (const auto& [sample, bad] : bad_) result.push_back(bad);
    return result;
  }
  CacheStatistics cache_statistics() const override { return source_.cache_statistics(); }

 private:
  // Rows of an epoch's order.
  struct Place {
    int64_t epoch = 0, first = 0, rows = 0;
  };

  bool endless() const { return options_.mode == LoaderMode::kTrain; }
  bool HasNext() const;
  Place TakeNext();
  void FillFreeSlots();
  void ChooseSamples(const Place& place, Slot* slot);
  bool soft() const { return MixesImages(augment_) || !class_weights_.empty(); }
  int64_t SampleAt(int64_t position) const {
    return indices_[endless() ? order_[position] : position];
  }
  static void SetLabels(Slot* slot, int64_t row, const RowLabels& labels);
  void StartRows(Slot* slot);
  void LoadRows(Slot* slot, size_t index, int worker);
  void LoadRow(Slot* slot, int64_t row, int worker);
  void MixRows(Slot* slot, size_t index, int worker);
  std::span<float> PixelsOf(Slot* slot, int64_t row) const {
    return slot->pixels.floats().subspan(row * row_floats_, row_floats_);
  }
  double WaitFor(Slot* slot);
  Status TakeBadImages(Slot* slot);

  const Dataset* dataset_;
  const std::vector<int64_t> indices_;
  const BadImagesConfig bad_images_config_;
  const AugmentConfig augment_;
  const LoaderOptions options_;
  const Sharding sharding_;
  const int64_t row_floats_;
  ImageSource source_;
  std::vector<float> class_weights_;                // by class; empty: all 1
  std::vector<ImageSource::Buffers> buffers_;       // one per worker
  std::vector<std::vector<float>> partner_pixels_;  // likewise

  // Used by the consumer's thread only.
  int64_t next_epoch_ = 0, next_step_ = 0;  // of the next batch to start
  bool on_request_ = false;
  std::deque<Place> requested_;  // not started yet
  std::vector<int64_t> order_;   // of epoch `order_epoch_`: positions in indices_
  int64_t order_epoch_ = -1;
  std::deque<std::unique_ptr<Slot>> free_, in_flight_;  // in_flight_: in the order of delivery
  std::unique_ptr<Slot> delivered_;                     // the consumer's current batch
  std::map<int64_t, BadImage> bad_;                     // by sample

  Mutex mutex_;  // guards rows_left and bad of every Slot
  ConditionVariable row_done_;
  WorkerPool pool_;  // last: its threads use the members above
};

// Sample -1 beyond the end of the list.
void PrefetchingLoader::ChooseSamples(const Place& place, Slot* slot) {
  if (endless() && order_epoch_ != place.epoch) {
    order_ = EpochOrder(options_.seed, place.epoch, std::ssize(indices_), sharding_);
    order_epoch_ = place.epoch;
  }
  for (int64_t row = 0; row < place.rows; ++row) {
    const int64_t position = place.first + row;
    const bool exists = position < std::ssize(indices_);
    const int64_t sample = exists ? SampleAt(position) : -1;
    slot->samples[row] = sample;
    const int32_t label = exists ? dataset_->samples()[sample].label : -1;
    SetLabels(slot, row, PlainLabels(label, class_weights_));
  }
  slot->work = PlanRows(augment_, static_cast<int32_t>(options_.image_size),
                        {.seed = options_.seed,
                         .epoch = place.epoch,
                         .first = place.first,
                         .rows = place.rows,
                         .images = std::ssize(indices_)});
  slot->partners.clear();
  for (const RowWork& work : slot->work) {
    slot->partners.push_back(work.partner_position < 0 ? -1 : SampleAt(work.partner_position));
  }
  slot->epoch = place.epoch;
  slot->step_in_epoch = place.first / options_.global_batch;
  slot->rows = place.rows;
}

bool PrefetchingLoader::HasNext() const {
  if (on_request_) return !requested_.empty();
  return endless() || next_step_ < steps_per_epoch();
}

// What was asked for, or the rank's rows of the next batch.
PrefetchingLoader::Place PrefetchingLoader::TakeNext() {
  if (on_request_) {
    const Place place = requested_.front();
    requested_.pop_front();
    return place;
  }
  const Place place{.epoch = next_epoch_,
                    .first = next_step_ * options_.global_batch + options_.first_row,
                    .rows = options_.batch};
  ++next_step_;
  if (endless() && next_step_ == steps_per_epoch()) {
    ++next_epoch_;
    next_step_ = 0;
  }
  return place;
}

void PrefetchingLoader::StartRows(Slot* slot) {
  {
    MutexLock lock(&mutex_);
    slot->rows_left = slot->rows;
    slot->bad.clear();
  }
  for (size_t i = 0; i < slot->work.size(); ++i) {
    pool_.Submit([this, slot, i](int worker) { LoadRows(slot, i, worker); });
  }
}

void PrefetchingLoader::FillFreeSlots() {
  while (!free_.empty() && HasNext()) {
    std::unique_ptr<Slot> slot = std::move(free_.front());
    free_.pop_front();
    ChooseSamples(TakeNext(), slot.get());
    StartRows(slot.get());
    in_flight_.push_back(std::move(slot));
  }
}

void PrefetchingLoader::SetLabels(Slot* slot, int64_t row, const RowLabels& labels) {
  slot->labels[row] = labels.label;
  slot->other_labels[row] = labels.other_label;
  slot->label_weights[row] = labels.weights;
}

// On a worker, as what follows: the rows of one item of the slot's work.
void PrefetchingLoader::LoadRows(Slot* slot, size_t index, int worker) {
  const RowWork& work = slot->work[index];
  LoadRow(slot, work.row, worker);
  if (work.second >= 0) LoadRow(slot, work.second, worker);
  MixRows(slot, index, worker);

  MutexLock lock(&mutex_);
  slot->rows_left -= work.second >= 0 ? 2 : 1;
  if (slot->rows_left == 0) row_done_.NotifyAll();
}

// Rows that were not loaded have label -1. A partner that is bad is reported by who has its row.
void PrefetchingLoader::MixRows(Slot* slot, size_t index, int worker) {
  const RowWork& work = slot->work[index];
  const auto size = static_cast<int32_t>(options_.image_size);
  const int32_t own = slot->labels[work.row];
  if (work.mix.kind == ImageMix::Kind::kNone || own < 0) return;
  if (work.second >= 0) {
    const int32_t partner = slot->labels[work.second];
    if (partner < 0) return;
    MixPair(work.mix, size, PixelsOf(slot, work.row), PixelsOf(slot, work.second));
    SetLabels(slot, work.row, MixLabels(work.mix, own, partner, class_weights_));
    SetLabels(slot, work.second, MixLabels(work.mix, partner, own, class_weights_));
    return;
  }
  const int64_t sample = slot->partners[index];
  const int32_t partner = dataset_->samples()[sample].label;
  std::vector<float>& pixels = partner_pixels_[worker];
  pixels.resize(row_floats_);
  if (partner < 0) return;
  if (!source_.Load(sample, slot->epoch, &buffers_[worker], pixels.data()).ok()) return;
  MixInto(work.mix, size, pixels, PixelsOf(slot, work.row));
  SetLabels(slot, work.row, MixLabels(work.mix, own, partner, class_weights_));
}

// Fills one row, or zeroes it.
void PrefetchingLoader::LoadRow(Slot* slot, int64_t row, int worker) {
  const std::span<float> pixels = PixelsOf(slot, row);
  const int64_t sample = slot->samples[row];
  Status status;
  if (sample >= 0) status = source_.Load(sample, slot->epoch, &buffers_[worker], pixels.data());
  if (sample < 0 || !status.ok()) std::fill(pixels.begin(), pixels.end(), 0.0F);
  if (status.ok()) return;
  SetLabels(slot, row, PlainLabels(-1, class_weights_));
  MutexLock lock(&mutex_);
  slot->bad.push_back({sample, dataset_->samples()[sample].key, status.message()});
}

// Waits for all rows of `slot`; returns the seconds.
double PrefetchingLoader::WaitFor(Slot* slot) {
  const Stopwatch stopwatch;
  const ScopedSpan span("wait for images", "loader");
  MutexLock lock(&mutex_);
  while (slot->rows_left > 0) row_done_.Wait(&mutex_);
  return stopwatch.Seconds();
}

// Adds the batch's bad images to the known ones; an error if they have become too many.
Status PrefetchingLoader::TakeBadImages(Slot* slot) {
  std::vector<BadImage> found;
  {
    MutexLock lock(&mutex_);
    found.swap(slot->bad);
  }
  if (found.empty()) return OkStatus();
  std::sort(found.begin(), found.end(),
            [](const BadImage& a, const BadImage& b) { return a.sample < b.sample; });
  for (BadImage& bad : found) {
    const auto [place, is_new] = bad_.try_emplace(bad.sample, bad);
    const bool is_known = std::find(options_.known_bad.begin(), options_.known_bad.end(),
                                    bad.sample) != options_.known_bad.end();
    if (is_new && !is_known) LogWarning(fmt::format("left out: {} {}", bad.key, bad.reason));
  }
  return CheckBadImages(bad_images(), static_cast<int64_t>(indices_.size()), bad_images_config_);
}

void PrefetchingLoader::Request(int64_t epoch, int64_t first, int64_t rows) {
  RT_CHECK(endless() && epoch >= 0 && first >= 0 && rows >= 1 && rows <= options_.batch &&
               first + rows <= std::ssize(indices_),
           "a loader is asked for images of an epoch, at most a batch");
  on_request_ = true;
  requested_.push_back({.epoch = epoch, .first = first, .rows = rows});
  FillFreeSlots();
}

StatusOr<LoadedBatch> PrefetchingLoader::Next() {
  if (delivered_ != nullptr) free_.push_back(std::move(delivered_));
  FillFreeSlots();
  LoadedBatch batch;
  RT_CHECK(!on_request_ || !in_flight_.empty(), "a batch that was asked for");
  if (in_flight_.empty()) {  // the end of an evaluation
    batch.step_in_epoch = next_step_;
    return batch;
  }
  delivered_ = std::move(in_flight_.front());
  in_flight_.pop_front();
  batch.wait_seconds = WaitFor(delivered_.get());
  RT_RETURN_IF_ERROR(TakeBadImages(delivered_.get()));
  batch.images = delivered_->pixels.floats().data();
  batch.labels = std::span(delivered_->labels).first(delivered_->rows);
  batch.samples = std::span(delivered_->samples).first(delivered_->rows);
  if (soft()) {
    batch.other_labels = std::span(delivered_->other_labels).first(delivered_->rows);
    batch.label_weights = std::span(delivered_->label_weights).first(delivered_->rows);
  }
  batch.epoch = delivered_->epoch;
  batch.step_in_epoch = delivered_->step_in_epoch;
  return batch;
}

void PrefetchingLoader::Seek(int64_t epoch, int64_t step_in_epoch) {
  RT_CHECK(epoch >= 0 && step_in_epoch >= 0, "a loader cannot seek before its beginning");
  pool_.Cancel();
  if (delivered_ != nullptr) free_.push_back(std::move(delivered_));
  for (std::unique_ptr<Slot>& slot : in_flight_) free_.push_back(std::move(slot));
  in_flight_.clear();
  requested_.clear();
  // A step after the last one of its epoch belongs to the next epoch.
  const int64_t steps = endless() ? steps_per_epoch() : step_in_epoch + 1;
  next_epoch_ = epoch + step_in_epoch / steps;
  next_step_ = step_in_epoch % steps;
}

Status CheckOptions(const Dataset& dataset, const std::vector<int64_t>& indices,
                    const LoaderOptions& options) {
  constexpr int64_t kMost = 1024;
  if (options.batch < 1)
    return InvalidArgument(fmt::format("batch is {}; use 1 or more", options.batch));
  if (options.image_size < 1 || options.image_size > kMost) {
    return InvalidArgument(fmt::format("image_size is {}; use 1 .. {}", options.image_size, kMost));
  }
  if (options.first_row < 0 || options.first_row + options.batch > options.global_batch) {
    return InvalidArgument(fmt::format("rows {} to {} do not exist in a global batch of {}",
                                       options.first_row, options.first_row + options.batch - 1,
                                       options.global_batch));
  }
  for (const int64_t index : indices) {
    RT_CHECK(index >= 0 && index < static_cast<int64_t>(dataset.samples().size()),
             "a loader was given a sample that its data set does not have");
  }
  const auto count = static_cast<int64_t>(indices.size());
  if (options.mode == LoaderMode::kTrain && count < options.global_batch) {
    return InvalidArgument(
        fmt::format("{} training images do not fill one batch of {}; use a smaller batch, fewer "
                    "ranks or more images",
                    count, options.global_batch));
  }
  return OkStatus();
}

}  // namespace

StatusOr<std::unique_ptr<DataLoader>> DataLoader::Create(const Dataset* dataset,
                                                         std::vector<int64_t> indices,
                                                         const DataConfig& config,
                                                         const LoaderOptions& asked) {
  LoaderOptions options = asked;
  if (options.global_batch == 0) options.global_batch = options.batch;
  RT_RETURN_IF_ERROR(CheckOptions(*dataset, indices, options));
  // The consumer holds one batch; another must be in preparation.
  if (config.prefetch_batches() < 2) {
    return InvalidArgument(
        fmt::format("prefetch_batches is {}; use 2 .. 64", config.prefetch_batches()));
  }
  const int64_t image_bytes =
      kChannels * options.image_size * options.image_size * static_cast<int64_t>(sizeof(float));
  RT_RETURN_IF_ERROR(CheckMemoryAvailable(
      config.prefetch_batches() * options.batch * image_bytes,
      fmt::format("reading {} batches of {} images of {} pixels ahead (data.prefetch_batches)",
                  config.prefetch_batches(), options.batch, options.image_size)));
  const int workers = config.workers() > 0 ? config.workers() : UsableCores();
  RT_RETURN_IF_ERROR(WorkerPool::CheckStart(workers));
  return std::unique_ptr<DataLoader>(
      new PrefetchingLoader(dataset, std::move(indices), config, options, workers));
}

}  // namespace ringtail
