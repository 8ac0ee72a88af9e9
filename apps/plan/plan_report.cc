#include "apps/plan/plan_report.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

#include "apps/plan/auto_plan.h"
#include "apps/plan/choice_settings.h"
#include "core/text/counted.h"
#include "core/units.h"
#include "dist/gradients/gradient_buckets.h"
#include "dist/planner/image_sizes.h"
#include "dist/planner/shown_choices.h"

namespace ringtail {
namespace {

double Gain(const Prediction& prediction, const PlanAnswer& answer) {
  return prediction.images_per_s() / answer.found.one_host.images_per_s();
}

double ExposedMs(const Prediction& p) { return p.seconds.wire / p.choice.period * kMsPerSecond; }

std::string Row(const std::string& name, const Prediction& p, const PlanAnswer& answer) {
  return fmt::format("{:<48} {:>9.1f} {:>8.2f} {:>10.1f} {:>10.1f} {:>11.2f}\n", name,
                     p.images_per_s(), Gain(p, answer), p.step_seconds() * kMsPerSecond,
                     ExposedMs(p), p.bytes_per_image() / kKilo);
}

std::string BucketText(const Choice& choice) {
  if (choice.hosts == 1) return "";
  return fmt::format(", buckets of {} KiB", choice.buckets.bytes / 1024);
}

std::string Head(const PlannerFacts& facts, const NetworkFacts& network) {
  const LinkModel& link = network.links.between_hosts;
  std::string head = fmt::format(
      "{}: {} of {:.4g} {}, {} a host; {:.4g} MB/s and {:.4g} us between hosts\n", facts.net(),
      Counted(network.hosts, "host"), network.cores_per_host,
      network.cores_per_host == 1 ? "core" : "cores", Counted(network.ranks_per_host, "rank"),
      link.seconds_per_byte > 0 ? 1e-6 / link.seconds_per_byte : INFINITY, link.latency_s * 1e6);
  if (facts.further_size_size() > 0) {
    std::vector<std::string> sizes;
    for (const auto& [share, of_size] : SizesOf(facts)) {
      sizes.push_back(fmt::format("{} ({:.0f} %)", of_size.image_size(), share * kPercent));
    }
    head += fmt::format("means of the steps of a run with images of {} pixels\n",
                        fmt::join(sizes, ", "));
  }
  if (network.cores_per_rank() != facts.cores()) {
    head += fmt::format(
        "computing was measured on {} and is taken to be {:.4g} times as fast on "
        "{:.4g}\n",
        Counted(facts.cores(), "core"), network.cores_per_rank() / facts.cores(),
        network.cores_per_rank());
  }
  return head;
}

nlohmann::ordered_json Json(const Prediction& p, const PlanAnswer& answer) {
  const PredictedSeconds& s = p.seconds;
  return {{"hosts", p.choice.hosts},
          {"global_batch", p.choice.global_batch},
          {"scheme", p.choice.scheme},
          {"algorithm", p.choice.algorithm},
          {"bucket_kib", p.choice.buckets.bytes / 1024},
          {"end_bucket_kib", p.choice.buckets.end_bytes / 1024},
          {"period", p.choice.period},
          {"overlap", p.choice.overlap},
          {"divided", p.choice.divided},
          {"by_speed", p.choice.by_speed},
          {"images_per_s", p.images_per_s()},
          {"speed_up", Gain(p, answer)},
          {"bytes_per_image", p.bytes_per_image()},
          {"round_s", s.sum()},
          {"seconds",
           {{"data_wait", s.data_wait},
            {"forward", s.forward},
            {"backward", s.backward},
            {"batch_norm", s.batch_norm},
            {"contention", s.contention},
            {"waiting", s.waiting},
            {"coding", s.coding},
            {"wire", s.wire},
            {"activations", s.activations},
            {"update", s.update},
            {"merge", s.merge},
            {"roll_call", s.roll_call}}},
          {"communication_s", p.communication},
          {"reason", Reason(p)}};
}

// What all others are compared with.
bool IsOneHost(const Choice& choice) {
  return choice.hosts == 1 && choice.scheme == kDenseScheme && !choice.has_rounds();
}

Status Recommend(StepSimulator* simulator, const PlanQuestion& question, PlanAnswer* answer) {
  answer->recommended = answer->found.recommended;
  SearchSpace part = ShownPart(question.space, TrainedNetOf(*question.config));
  part.fewest_images = FewestShownImages(*question.facts);
  answer->shown = !part.schemes.empty();
  if (!question.slowness.empty()) {
    RT_ASSIGN_OR_RETURN(answer->unequal,
                        ChooseHosts(*question.facts, simulator->network(), question.slowness,
                                    answer->shown ? part : question.space, ShareRule::kFaster));
    answer->recommended = answer->unequal->best;
  } else if (answer->shown) {
    RT_ASSIGN_OR_RETURN(SearchResult found, Search(simulator, part));
    answer->recommended = std::move(found.recommended);
  }
  answer->shown = answer->shown || IsOneHost(answer->recommended.choice);
  answer->settings = SettingsOf(answer->recommended, *question.facts, *question.config);
  return OkStatus();
}

// Which of unequal hosts train, and what for.
std::string DescribeHosts(const HostChoice& choice, int hosts) {
  std::string text = fmt::format("of these unequal hosts {} would train: {}\n",
                                 fmt::join(choice.hosts, ", "), InWords(choice, hosts));
  if (choice.best.choice.by_speed) text += "  train --plan auto, or --local-batch auto\n";
  return text;
}

// What is faster than what is recommended, if anything is.
std::string DescribeFaster(const PlanAnswer& answer) {
  constexpr double kFaster = 1.02;
  const Prediction& fastest = answer.found.recommended;
  if (fastest.images_per_s() <= kFaster * answer.recommended.images_per_s()) return "";
  return fmt::format("faster, but not shown to train as accurately: {}: {:.2f} times one host\n",
                     Describe(fastest.choice), Gain(fastest, answer));
}

}  // namespace

StatusOr<PlanAnswer> AnswerPlan(StepSimulator* simulator, const PlanQuestion& question) {
  PlanAnswer answer;
  RT_ASSIGN_OR_RETURN(answer.found, Search(simulator, question.space));
  RT_RETURN_IF_ERROR(Recommend(simulator, question, &answer));
  const int64_t batch = question.space.global_batches.front();
  Choice choice{.hosts = simulator->network().HostsWithImages(batch),
                .global_batch = batch,
                .buckets = BucketsOf(question.config->dist())};
  RT_ASSIGN_OR_RETURN(answer.dense, simulator->Simulate(choice));
  for (const std::string& scheme : question.space.schemes) {
    for (const int period : question.periods) {
      for (const bool overlap : {false, true}) {
        if (overlap && period == 1) continue;
        choice.scheme = scheme;
        choice.period = period;
        choice.overlap = overlap;
        RT_ASSIGN_OR_RETURN(const Prediction prediction, simulator->Simulate(choice));
        answer.asked.push_back(prediction);
      }
    }
  }
  return answer;
}

std::string PlanTable(const PlannerFacts& facts, const NetworkFacts& network,
                      const PlanAnswer& answer) {
  std::string text = Head(facts, network);
  text += fmt::format("\n{:<48} {:>9} {:>8} {:>10} {:>10} {:>11}\n", "choice", "images/s",
                      "one host", "step ms", "exposed ms", "kB an image");
  text += Row("one host alone", answer.found.one_host, answer);
  if (answer.dense.choice.hosts > 1)
    text += Row(Describe(answer.dense.choice), answer.dense, answer);
  if (!answer.asked.empty()) text += "\nas asked\n";
  for (const Prediction& p : answer.asked) text += Row(Describe(p.choice), p, answer);
  text += "\nthe fastest, whatever they cost in accuracy\n";
  for (const Prediction& p : answer.found.best) text += Row(Describe(p.choice), p, answer);
  const auto slower = SlowerThanOne(answer.dense, answer.found.one_host);
  text += "\n" + (slower ? *slower + "\n" : "");
  const Prediction& best = answer.recommended;
  text += fmt::format("recommended: {}{}: {:.2f} times one host{}; {}\n  {}\n",
                      Describe(best.choice), BucketText(best.choice), Gain(best, answer),
                      answer.shown ? "" : ", not shown to train as accurately", Reason(best),
                      CriticalPath(best));
  for (const std::string& field : answer.settings) text += fmt::format("  --set '{}'\n", field);
  text += answer.unequal ? DescribeHosts(*answer.unequal, network.hosts) : DescribeFaster(answer);
  if (answer.pipeline) text += DescribePipeline(*answer.pipeline, best.images_per_s()) + "\n";
  return text;
}

std::string PlanJson(const PlannerFacts& facts, const NetworkFacts& network,
                     const PlanAnswer& answer) {
  const auto slower = SlowerThanOne(answer.dense, answer.found.one_host);
  nlohmann::ordered_json json = {{"net", facts.net()},
                                 {"hosts", network.hosts},
                                 {"ranks_per_host", network.ranks_per_host},
                                 {"cores_per_host", network.cores_per_host},
                                 {"measured_cores", facts.cores()},
                                 {"one_host", Json(answer.found.one_host, answer)},
                                 {"dense", Json(answer.dense, answer)},
                                 {"recommended", Json(answer.recommended, answer)},
                                 {"recommended_is_shown", answer.shown},
                                 {"fastest", Json(answer.found.recommended, answer)},
                                 {"config", answer.settings},
                                 {"warning", slower.value_or("")},
                                 {"simulated", answer.found.simulated},
                                 {"pruned", answer.found.pruned}};
  if (answer.unequal) json["training_hosts"] = answer.unequal->hosts;
  if (answer.pipeline) {
    const PipelinePlan& p = *answer.pipeline;
    json["pipeline"] = {{"stages", p.shape.stages},
                        {"micro_batches", p.shape.micro_batches},
                        {"images_per_s", p.images_per_s},
                        {"step_s", p.step_s},
                        {"waits", p.waits},
                        {"sent_bytes", p.sent_bytes},
                        {"cut_after", p.cut_after}};
  }
  for (const auto& [name, predictions] :
       {std::pair("asked", &answer.asked), std::pair("best", &answer.found.best)}) {
    json[name] = nlohmann::ordered_json::array();
    for (const Prediction& p : *predictions) json[name].push_back(Json(p, answer));
  }
  return json.dump(1);
}

}  // namespace ringtail
