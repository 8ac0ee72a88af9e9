#include "apps/emulator/emulation_log.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "apps/emulator/clock/event_queue.h"

namespace ringtail {
namespace {

using Json = nlohmann::ordered_json;

double Milliseconds(int64_t ns) { return static_cast<double>(ns) / kNanosecondsPerMillisecond; }

Json LineOf(const char* kind, int64_t now_ns) {
  return {{"kind", kind}, {"virtual_s", Seconds(now_ns)}};
}

}  // namespace

void EmulationLog::AddStep(int64_t now_ns, const WorkerStep& step) {
  const auto count = static_cast<double>(std::max<int64_t>(step.loss.count, 1));
  Json line = LineOf("step", now_ns);
  line["worker"] = step.worker;
  line["step"] = step.step;
  line["epoch"] = step.epoch;
  line["loss"] = step.loss.loss_sum / count;
  line["accuracy"] = static_cast<double>(step.loss.correct) / count;
  line["learning_rate"] = step.learning_rate;
  line["batch"] = step.loss.count;
  line["compute_ms"] = Milliseconds(step.compute_ns);
  line["blocked_ms"] = Milliseconds(step.blocked_ns);
  text_ += line.dump() + '\n';
  summary_.images += step.loss.count;
  summary_.compute_s += Seconds(step.compute_ns);
  summary_.blocked_s += Seconds(step.blocked_ns);
}

void EmulationLog::AddRound(int64_t now_ns, const RoundEnd& round) {
  const auto workers = static_cast<double>(std::max<int64_t>(round.workers, 1));
  Json line = LineOf("round", now_ns);
  line["round"] = round.round;
  line["step"] = round.step;
  line["workers"] = round.workers;
  line["images"] = round.images;
  line["difference_norm"] = std::sqrt(round.squares / workers);
  line["change_norm"] = std::sqrt(round.change_squares);
  line["cosine"] = nullptr;
  if (round.cosine) line["cosine"] = *round.cosine;
  line["exchange_ms"] = Milliseconds(round.exchange_ns);
  text_ += line.dump() + '\n';
}

void EmulationLog::AddUpdate(int64_t now_ns, const ServerUpdate& update) {
  Json line = LineOf("update", now_ns);
  line["version"] = update.version;
  line["pushes"] = update.pushes;
  line["images"] = update.images;
  line["staleness_mean"] =
      static_cast<double>(update.staleness) / static_cast<double>(update.pushes);
  line["staleness_max"] = update.most;
  line["learning_rate"] = update.learning_rate;
  line["discarded"] = summary_.discarded;
  text_ += line.dump() + '\n';
}

void EmulationLog::AddEvaluation(int64_t now_ns, int64_t step, double epoch,
                                 const EvaluationResult& result) {
  Json line = LineOf("evaluation", now_ns);
  line["step"] = step;
  line["epoch"] = epoch;
  line["loss"] = result.loss();
  line["accuracy"] = result.accuracy();
  text_ += line.dump() + '\n';
  summary_.loss = result.loss();
  summary_.accuracy = result.accuracy();
  if (result.accuracy() <= summary_.best_accuracy) return;
  summary_.best_accuracy = result.accuracy();
  summary_.best_accuracy_s = Seconds(now_ns);
}

void EmulationLog::AddEvent(int64_t now_ns, int worker, std::string_view what) {
  Json line = LineOf("event", now_ns);
  line["worker"] = worker;
  line["event"] = what;
  text_ += line.dump() + '\n';
}

std::string SummaryJson(const EmulationSummary& summary) {
  Json json = {{"virtual_s", summary.virtual_s},
               {"steps", summary.steps},
               {"images", summary.images},
               {"images_per_s", summary.images_per_s()},
               {"compute_s", summary.compute_s},
               {"blocked_s", summary.blocked_s},
               {"sent_bytes", summary.sent_bytes},
               {"loss", summary.loss},
               {"accuracy", summary.accuracy},
               {"best_accuracy", summary.best_accuracy},
               {"best_accuracy_s", summary.best_accuracy_s}};
  if (summary.staleness.count() > 0) {
    json["staleness"] = {{"mean", summary.staleness.Mean()},
                         {"p95", summary.staleness.Quantile(0.95)},
                         {"max", summary.staleness.max()},
                         {"histogram", summary.staleness.histogram()}};
    json["discarded"] = summary.discarded;
    json["diverges"] = nullptr;
    if (!summary.diverges.empty()) json["diverges"] = summary.diverges;
  }
  json["not_finite"] = nullptr;
  if (!summary.not_finite.empty()) json["not_finite"] = summary.not_finite;
  return json.dump(1);
}

}  // namespace ringtail
