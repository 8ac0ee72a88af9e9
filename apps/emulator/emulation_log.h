// EmulationLog: what an emulation writes: one JSON object per line, as metrics.jsonl has them
// (core/storage/metrics.h), with virtual times.
//
//   {"kind":"step","virtual_s":0.412,"worker":2,"step":16,"epoch":0.1,"loss":0.69,"accuracy":0.5,
//    "learning_rate":0.25,"batch":8,"compute_ms":25.7,"blocked_ms":3.1}
//   {"kind":"round","virtual_s":0.43,"round":1,"step":16,"workers":8,"images":1024,
//    "difference_norm":0.8,"change_norm":0.5,"cosine":0.31,"exchange_ms":17.9}
//   {"kind":"update","virtual_s":0.43,"version":17,"pushes":1,"images":8,"staleness_mean":3,
//    "staleness_max":3,"learning_rate":0.1,"discarded":0}
//   {"kind":"evaluation","virtual_s":3.9,"step":156,"epoch":1,"loss":0.5,"accuracy":0.75}
//   {"kind":"event","virtual_s":10,"worker":3,"event":"dies"}
//
//   blocked_ms    between the worker's step before and this one: it waited for others or the wire
//   difference_norm, change_norm   root mean square of |D_i|; |mean of D_i| (apps/trainer/local/)
//   cosine        mean over pairs of workers of the cosine between D_i and D_j, weighted by norms; null
//                 if it is not known, as behind codecs
//
// The same run writes the same bytes: nothing in it is a real time. Thread-safety: one thread.
#ifndef RINGTAIL_APPS_EMULATOR_EMULATION_LOG_H_
#define RINGTAIL_APPS_EMULATOR_EMULATION_LOG_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "apps/trainer/evaluation.h"
#include "dist/parameter_server/staleness_statistics.h"
#include "layers/net/net.h"

namespace ringtail {

struct WorkerStep {
  int worker = 0;
  int64_t step = 0;  // steps done with this one
  double epoch = 0, learning_rate = 0;
  LossResult loss;
  int64_t compute_ns = 0, blocked_ns = 0;
};

struct RoundEnd {
  int64_t round = 0, step = 0, workers = 0;
  double images = 0;
  double squares = 0;         // sum over the workers of |D_i|^2
  double change_squares = 0;  // |mean of D_i|^2
  // Between what two workers have changed (apps/trainer/local/mean_cosine.h); none: not known.
  std::optional<double> cosine;
  int64_t exchange_ns = 0;  // from when the last worker took part until the last one had the sum
};

// Of the server that holds the first parameters.
struct ServerUpdate {
  int64_t version = 0;  // after it
  int64_t pushes = 0, images = 0;
  int64_t staleness = 0, most = 0;  // sum over its pushes; the largest
  double learning_rate = 0;
};

// Of a whole run; virtual times.
struct EmulationSummary {
  double virtual_s = 0;
  int64_t steps = 0;                    // of the run
  int64_t images = 0;                   // that gradients were computed of, and that counted
  double compute_s = 0, blocked_s = 0;  // sums over the workers
  int64_t sent_bytes = 0;               // by all workers
  double loss = 0, accuracy = 0;        // of the last evaluation
  double best_accuracy = 0, best_accuracy_s = 0;
  StalenessStatistics staleness;  // of pushes to server 0; empty without servers
  int64_t discarded = 0;          // pushes that no server took
  std::string diverges;           // when, and what to change; empty: it does not
  std::string not_finite;         // where training ended early; empty: it did not

  double images_per_s() const {
    return virtual_s > 0 ? static_cast<double>(images) / virtual_s : 0;
  }
};

class EmulationLog {
 public:
  void AddStep(int64_t now_ns, const WorkerStep& step);
  void AddRound(int64_t now_ns, const RoundEnd& round);
  void AddUpdate(int64_t now_ns, const ServerUpdate& update);
  void AddEvaluation(int64_t now_ns, int64_t step, double epoch, const EvaluationResult& result);
  void AddEvent(int64_t now_ns, int worker, std::string_view what);

  const std::string& text() const { return text_; }
  EmulationSummary& summary() { return summary_; }
  const EmulationSummary& summary() const { return summary_; }

 private:
  std::string text_;
  EmulationSummary summary_;
};

// {"virtual_s":..., "accuracy":...}
std::string SummaryJson(const EmulationSummary& summary);

}  // namespace ringtail

#endif  // RINGTAIL_APPS_EMULATOR_EMULATION_LOG_H_
