#include "dist/planner/server_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <span>
#include <string_view>
#include <vector>

#include "core/check.h"
#include "dist/compression/gradient_shape.h"
#include "dist/compression/layer_costs.h"
#include "dist/planner/exchange_jobs.h"
#include "dist/planner/image_sizes.h"

namespace ringtail {
namespace {

constexpr double kBytesPerFloat = 4;
constexpr double kBytesPerBf16 = 2;
constexpr double kBytesPerDelta = 1.03;  // dist/parameter_server/pull_coding.h
constexpr double kRoundTrip = 2;         // latencies
constexpr double kUnlimited = std::numeric_limits<double>::infinity();

// What one push and one pull of all weights need.
struct Travel {
  double push_bytes = 0, pull_bytes = 0;
  double encode = 0, decode = 0;  // seconds of a push, on one core
};

PlannedScheme SchemeOf(const PlannerFacts& facts, std::string_view name,
                       std::span<const Parameter> parameters) {
  for (const SchemeFacts& scheme : facts.scheme()) {
    if (scheme.name() == name) return PlannedScheme::Of(scheme, parameters);
  }
  RT_CHECK(name == kDenseScheme, "a scheme of the facts");
  return PlannedScheme::Dense(parameters);
}

// What a scheme does not send as payloads of a codec travels as floats (push_coding.h).
Travel TravelOf(const PlannerFacts& facts, const ServerChoice& choice) {
  const std::vector<Parameter> parameters = ParametersOf(facts);
  const PlannedScheme scheme = SchemeOf(facts, choice.scheme, parameters);
  constexpr int kTwoRanks = 2;  // each of which receives one payload
  Travel travel;
  for (size_t i = 0; i < parameters.size(); ++i) {
    const auto elements = static_cast<double>(parameters[i].elements);
    travel.pull_bytes += choice.bytes_per_weight * elements;
    const LayerScheme& layer = scheme.layers[i];
    if (layer.codec == nullptr) {
      travel.push_bytes += kBytesPerFloat * elements;
      continue;
    }
    travel.push_bytes += static_cast<double>(ReceivedBytes(
        LayerRoute::kGathered, layer, GradientShapeOf(parameters[i].spec), kTwoRanks));
    travel.encode += scheme.coding[i].encode_seconds;
    travel.decode += scheme.coding[i].decode_seconds;
  }
  return travel;
}

// Numbers as names in the header; seconds and bytes are of one push.
struct World {
  double workers, servers;
  double compute;  // T: of a worker
  double update;   // U: of all weights
  Travel travel;
  double latency, seconds_per_byte;  // of a rank's link
  bool dedicated;
  // The part of the pushes that another rank sends.
  double from_others() const { return dedicated ? 1 : (workers - 1) / workers; }
};

// Processor seconds of a message.
double Sending(const NetworkFacts& network, double bytes) {
  return network.sending.per_byte * bytes + network.sending.per_message;
}

World WorldOf(const PlannerFacts& facts, const NetworkFacts& network, const ServerChoice& choice) {
  const int ranks = network.hosts * network.ranks_per_host;
  RT_CHECK(choice.servers >= 1 && choice.servers <= ranks - (choice.dedicated ? 1 : 0),
           "ranks that serve, and one that computes");
  const double cores = network.cores_per_rank(), one_core = std::min(1.0, cores);
  const int workers = ranks - (choice.dedicated ? choice.servers : 0);
  double step = facts.data_wait_s(), update = 0;
  for (const auto& [share, timetable] : TimetablesOf(facts, cores)) {
    const ComputeTimes times = timetable.TimesAt(choice.batch, workers);
    step += share * (times.forward + times.earlier_backward + times.backward);
    update += share * times.update;
  }
  const bool crosses = network.hosts > 1;
  const LinkModel& link = crosses ? network.links.between_hosts : network.links.within_host;
  World world{.workers = static_cast<double>(workers),
              .servers = static_cast<double>(choice.servers),
              .update = update,
              .travel = TravelOf(facts, choice),
              .latency = link.latency_s,
              // The ranks of a host share its link.
              .seconds_per_byte = link.seconds_per_byte * (crosses ? network.ranks_per_host : 1),
              .dedicated = choice.dedicated};
  world.compute = choice.gradients_per_push * step + world.travel.encode / one_core +
                  Sending(network, world.travel.push_bytes) / one_core;
  world.update += (world.travel.decode + Sending(network, world.travel.pull_bytes)) / one_core;
  return world;
}

struct Rate {
  double pushes_per_s = 0;
  const char* limit = "computing";
};

// Of one worker, if the servers answer at once.
Rate RateOfWorker(const World& w, bool overlap) {
  const Travel& t = w.travel;
  const double wire = w.seconds_per_byte * (overlap ? std::max(t.push_bytes, t.pull_bytes)
                                                    : t.push_bytes + t.pull_bytes) +
                      kRoundTrip * w.latency;
  const double step = overlap ? std::max(w.compute, wire) : w.compute + wire;
  return {1 / step, wire > w.compute ? "the links of the workers" : "computing"};
}

// What the servers' cores allow; updates come first on a rank that computes, too.
double RateOfUpdates(const World& w, double worker) {
  if (w.update <= 0) return kUnlimited;
  const double most = w.servers / w.update;
  if (w.dedicated) return most;
  const double all = w.workers * worker;
  const double left = (1 - all * w.update / w.servers) / w.compute;  // of a worker that serves
  if (left >= worker) return kUnlimited;
  const double others = (w.workers - w.servers) * worker;
  if (others >= most) return most;
  return (others + w.servers / w.compute) / (1 + w.update / w.compute);
}

double RateOfServerLinks(const World& w) {
  const Travel& t = w.travel;
  const double own = w.dedicated ? 0 : (w.servers - 1) / (w.servers * w.workers);
  const double served = w.from_others() / w.servers;
  const double out = served * t.pull_bytes + own * t.push_bytes;
  const double in = served * t.push_bytes + own * t.pull_bytes;
  const double seconds = w.seconds_per_byte * std::max(out, in);
  return seconds > 0 ? 1 / seconds : kUnlimited;
}

// All push, the update, all pull.
Rate RateTogether(const World& w) {
  const double bytes = w.workers * w.from_others() / w.servers;
  const double wire = w.seconds_per_byte * bytes * (w.travel.push_bytes + w.travel.pull_bytes) +
                      2 * kRoundTrip * w.latency;
  const double step = w.compute + w.update / w.servers + wire;
  return {w.workers / step, wire > w.compute ? "the links of the servers" : "computing"};
}

Rate RateApart(const World& w, bool overlap) {
  const Rate worker = RateOfWorker(w, overlap);
  Rate rate{w.workers * worker.pushes_per_s, worker.limit};
  const auto limit = [&](double pushes_per_s, const char* by) {
    if (pushes_per_s < rate.pushes_per_s) rate = {pushes_per_s, by};
  };
  limit(RateOfUpdates(w, worker.pushes_per_s), "the updates of the servers");
  limit(RateOfServerLinks(w), "the links of the servers");
  return rate;
}

double BytesPerWeight(AsynchronousConfig::Pull pull) {
  switch (pull) {
    case AsynchronousConfig::F32:
      break;
    case AsynchronousConfig::BF16:
      return kBytesPerBf16;
    case AsynchronousConfig::DELTA:
      return kBytesPerDelta;
  }
  return kBytesPerFloat;
}

}  // namespace

ServerChoice ServerChoiceOf(const AsynchronousConfig& config, int ranks, int64_t batch) {
  return {.batch = batch,
          .gradients_per_push = std::max(config.gradients_per_push(), 1),
          .servers = config.servers() > 0 ? std::min(config.servers(), ranks) : ranks,
          .dedicated = config.dedicated(),
          .bytes_per_weight = BytesPerWeight(config.pull()),
          .overlap = config.overlap(),
          .synchronous = config.rule() == AsynchronousConfig::SYNCHRONOUS ||
                         config.rule() == AsynchronousConfig::BACKUP_WORKERS};
}

ServerPrediction PredictServers(const PlannerFacts& facts, const NetworkFacts& network,
                                const ServerChoice& choice) {
  const World world = WorldOf(facts, network, choice);
  const Rate rate = choice.synchronous ? RateTogether(world) : RateApart(world, choice.overlap);
  const double images = static_cast<double>(choice.batch) * choice.gradients_per_push;
  return {.choice = choice,
          .workers = static_cast<int>(world.workers),
          .images_per_s = rate.pushes_per_s * images,
          .limit = rate.limit};
}

std::string Describe(const ServerPrediction& prediction) {
  const ServerChoice& choice = prediction.choice;
  const std::string where = choice.dedicated ? fmt::format("servers on {} more", choice.servers)
                                             : fmt::format("servers on {} of them", choice.servers);
  return fmt::format("{} workers, {}: predicted {:.4g} images/s, limited by {}", prediction.workers,
                     where, prediction.images_per_s, prediction.limit);
}

}  // namespace ringtail
