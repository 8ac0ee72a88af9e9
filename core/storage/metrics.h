// metrics.jsonl: one line per training step and evaluation, each a JSON object, for scripts and
// plots.
//
//   {"kind":"step","step":120,"epoch":0.96,"loss":0.61,"accuracy":0.67,"learning_rate":0.05,
//    "batch":64,"noise_scale":null,"images_per_s":1180.2,"step_ms":54.2,"data_wait_ms":0.1,
//    "forward_ms":17.9,"backward_ms":35.0,"exposed_comm_ms":0,"hidden_comm_ms":0,"comm_bytes":0,
//    "encode_ms":0,"decode_ms":0,"ranks":null,"time":1764031526.123}   time: UNIX, when written
//
// With several ranks, `loss`, `accuracy`, `batch` and `images_per_s` are the world's, the times are
// those of the writing rank, and `ranks` has an object with the images, times and bytes of each
// rank.
//
// Ranks that take steps of their own (dist.local) write the loss, accuracy and images of the
// writing rank for each step, and for each round of steps a line of kind "round" with those of the
// world, the time, and what the exchange took. Such a line has `local_steps` and `cosine`, too.
//
// Ranks that do not wait for one another (dist.asynchronous) write a line of kind "update" in place
// of "step" after each gradient of the writing rank: loss, accuracy, images and speed of all ranks
// since the line before, and ServerMetrics as `version`, `staleness_mean`, `staleness_p95`,
// `staleness_max`, `staleness_histogram` ([0, 2, 5]: none of no staleness, two of 1, five of 2),
// `blocked_ms`, `discarded` and `refused`.
//
// What was predicted of a run before its first step, beside what was measured since, is one line of
// its own for each size of training images, in milliseconds per step (apps/plan/prediction_report.h):
//
//   {"kind":"prediction","step":55,"steps":50,"image_size":64,
//    "terms":{"forward":{"predicted_ms":19.1,"measured_ms":17.9}, ...}}
//
// Otherwise every line has every key; values that are unknown, not applicable or not finite are
// null. Durability: a line is one write(), so that a killed process loses no line; a power cut may
// lose the last lines or tear one. Opening the file to resume repairs it
// (core/storage/metrics_repair.h). Thread-safety: one writer, one thread. Errors: Status with the
// path.
#ifndef RINGTAIL_CORE_STORAGE_METRICS_H_
#define RINGTAIL_CORE_STORAGE_METRICS_H_

#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "core/status.h"
#include "core/storage/file_descriptor.h"

namespace ringtail {

inline constexpr double kNoMetric = std::numeric_limits<double>::quiet_NaN();

// The times of one rank in a step.
struct RankMetrics {
  int64_t batch = 0;                // its images; 0: not known
  double data_wait_ms = kNoMetric;  // the trainer waited for a batch
  double forward_ms = kNoMetric;
  double backward_ms = kNoMetric;
  double exposed_comm_ms = kNoMetric;  // communication that backward did not hide
  double hidden_comm_ms = kNoMetric;   // communication that backward hid
  int64_t comm_bytes = 0;              // sent
  double encode_ms = 0;                // compression of gradients, overlapped with backward
  double decode_ms = 0;
};

// What servers have done since the line before (dist.asynchronous).
struct ServerMetrics {
  int64_t version = 0;           // updates so far
  double staleness = kNoMetric;  // updates that a gradient was late: mean, 95 %, most
  int64_t staleness_p95 = 0, most_stale = 0;
  std::vector<int64_t> staleness_histogram;  // gradients, by staleness
  double blocked_ms = kNoMetric;             // the writing rank has waited for servers
  int64_t discarded = 0;                     // gradients that were too old
  int64_t refused = 0;                       // gradients that were not finite
};

// A part of the mean step, as predicted and as it was.
struct PredictedTerm {
  std::string name;
  double predicted_ms = kNoMetric, measured_ms = kNoMetric;
};

struct Metrics {
  enum class Kind { kStep, kEvaluation, kRound, kUpdate, kPrediction };
  Kind kind = Kind::kStep;
  int64_t step = 0;             // optimizer steps done
  double epoch = kNoMetric;     // passes over the training images, a real number
  double loss = kNoMetric;      // mean over the images of the step or evaluation
  double accuracy = kNoMetric;  // fraction of the same images
  double learning_rate = kNoMetric;
  int64_t batch = 0;        // images of the step; 0: not known
  int64_t local_steps = 0;  // of a round, by each rank; 0: no round
  // Of a round: mean between what two ranks have changed in it; not known if it was compressed.
  double cosine = kNoMetric;
  double noise_scale = kNoMetric;  // images (optim/noise_scale.h); several ranks only
  double images_per_s = kNoMetric;
  double step_ms = kNoMetric;
  double time = kNoMetric;         // UNIX seconds; kNoMetric: when it is written
  ServerMetrics servers;           // of an update
  RankMetrics own;                 // of the writing rank
  std::vector<RankMetrics> ranks;  // of every rank; empty if there is only one
  // Of a prediction: its terms, of how many steps the measured ones are means, and of images of how
  // many pixels a side.
  std::vector<PredictedTerm> terms;
  int64_t compared_steps = 0, image_size = 0;
};

// Now, as `time` has it: UNIX seconds, to the millisecond.
double UnixSeconds();

// One line without its time and newline.
std::string MetricsJson(const Metrics& metrics);

class MetricsWriter {
 public:
  // Opens `path` to append. First drops the lines that a run resumed at `resumed_step` will write
  // again (those of later steps) and torn lines. -1 starts an empty file.
  static StatusOr<MetricsWriter> Open(const std::string& path, int64_t resumed_step);

  Status Write(const Metrics& metrics);

 private:
  explicit MetricsWriter(FileDescriptor file) : file_(std::move(file)) {}
  FileDescriptor file_;
};

}  // namespace ringtail

#endif  // RINGTAIL_CORE_STORAGE_METRICS_H_
