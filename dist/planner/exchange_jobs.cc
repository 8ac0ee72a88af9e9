#include "dist/planner/exchange_jobs.h"

#include <algorithm>

#include "core/round.h"
#include "dist/compression/exchange/payload_exchange.h"
#include "dist/compression/scheme_choice.h"

namespace ringtail {
namespace {

LayerRoute RouteOf(const PlannedScheme& scheme, const GradientShape& shape, size_t i,
                   const ExchangeWorld& world) {
  const LayerScheme& layer = scheme.layers[i];
  if (layer.dense()) return LayerRoute::kDense;
  return ChooseRoute(scheme.config, layer,
                     CostsOf(layer, shape, scheme.coding[i], world.ranks, world.seconds_per_byte));
}

// The job of one bucket, as its layers are added up.
class BucketJob {
 public:
  BucketJob(const PlannedScheme& scheme, const ExchangeWorld& world, CollectivePrices* prices,
            double* sent_bytes)
      : scheme_(scheme), world_(world), prices_(*prices), sent_bytes_(*sent_bytes) {}

  void Add(size_t i, const Parameter& parameter) {
    const GradientShape shape = GradientShapeOf(parameter.spec);
    const LayerScheme& layer = scheme_.layers[i];
    const LayerRoute route = RouteOf(scheme_, shape, i, world_);
    // Means over the steps that a layer waits for.
    const auto every = static_cast<double>(layer.every_steps);
    const LayerCoding coding = {.encode_seconds = scheme_.coding[i].encode_seconds / every,
                                .decode_seconds = scheme_.coding[i].decode_seconds / every};
    const double clear = scheme_.clear[i] / every;
    coded_ |= !layer.dense() && route != LayerRoute::kDense;
    const double others = world_.ranks - 1;
    switch (route) {
      case LayerRoute::kDense:
        summed_[0] += parameter.elements;
        break;
      case LayerRoute::kSketched:
        sketching_ += coding.encode_seconds + coding.decode_seconds;
        for (int round = 0; round < layer.sketch->rounds(); ++round) {
          summed_[round] += layer.sketch->Floats(round) / layer.every_steps;
        }
        break;
      case LayerRoute::kGathered: {
        const auto bytes = static_cast<double>(ReceivedBytes(route, layer, shape, world_.ranks));
        gathered_block_ += static_cast<int64_t>(bytes / others);
        encoding_ += coding.encode_seconds;
        decoding_ += clear + world_.ranks * coding.decode_seconds;
        break;
      }
      case LayerRoute::kSharded: {
        const PartBytes bytes = PartBytesOf(*layer.codec, AfterWarmUp(shape), world_.ranks);
        sharded_block_ += bytes.gradient / layer.every_steps;
        sum_block_ += bytes.sum / layer.every_steps;
        shard_coding_.encode_seconds += coding.encode_seconds;
        shard_coding_.decode_seconds += coding.decode_seconds;
        clearing_ += clear;
        break;
      }
    }
  }

  // `range`: of the whole bucket.
  CommunicationJob Finish(const ElementRange& range) {
    if (!coded_) {
      Send(prices_.Allreduce(range.count));
      return std::move(job_);
    }
    Code(sketching_);
    for (const int64_t elements : summed_) Send(prices_.Allreduce(elements));
    const int64_t ranks = world_.ranks;
    if (gathered_block_ > 0) {
      Code(encoding_);
      Send(prices_.Allgather(ranks * Elements(gathered_block_)));
      Code(decoding_);
    }
    if (sharded_block_ > 0) {
      Code(shard_coding_.encode_seconds);
      Send(prices_.AllToAll(Elements(sharded_block_)));
      Code(shard_coding_.decode_seconds +
           (clearing_ + shard_coding_.encode_seconds) / static_cast<double>(ranks));
      Send(prices_.Allgather(ranks * Elements(sum_block_)));
      Code(clearing_ + shard_coding_.decode_seconds);
    }
    return std::move(job_);
  }

 private:
  static int64_t Elements(int64_t bytes) { return CeilDivide(bytes, kElementBytes); }

  void Code(double seconds) {
    if (seconds > 0) job_.Add(CommunicationWork::Coding(seconds, world_.cores));
  }
  void Send(const CollectivePrice& price) {
    sent_bytes_ += static_cast<double>(price.sent_bytes);
    job_.Add(WorkOf(price, world_.sending, world_.cores));
  }

  const PlannedScheme& scheme_;
  const ExchangeWorld& world_;
  CollectivePrices& prices_;
  double& sent_bytes_;
  CommunicationJob job_;
  bool coded_ = false;
  int64_t summed_[2] = {0, 0};  // elements, of each round
  double sketching_ = 0, encoding_ = 0, decoding_ = 0;
  LayerCoding shard_coding_;
  double clearing_ = 0;  // of layers that are sharded
  // Bytes per rank.
  int64_t gathered_block_ = 0, sharded_block_ = 0, sum_block_ = 0;
};

}  // namespace

PlannedScheme PlannedScheme::Dense(std::span<const Parameter> parameters) {
  PlannedScheme scheme;
  scheme.layers.resize(parameters.size());
  scheme.coding.resize(parameters.size());
  scheme.clear.resize(parameters.size());
  return scheme;
}

PlannedScheme PlannedScheme::Of(const SchemeFacts& facts, std::span<const Parameter> parameters) {
  PlannedScheme scheme{.config = facts.compression()};
  scheme.layers = ChooseSchemes(scheme.config, parameters, /*samples=*/1);
  for (size_t i = 0; i < parameters.size(); ++i) {
    const int at = static_cast<int>(i);
    scheme.coding.push_back(
        {.encode_seconds = facts.encode_s(at), .decode_seconds = facts.decode_s(at)});
    scheme.clear.push_back(facts.clear_s().empty() ? 0 : facts.clear_s(at));
  }
  return scheme;
}

CommunicationWork WorkOf(const CollectivePrice& price, const SendingCost& sending, double cores) {
  auto work = CommunicationWork::Collective(price.seconds, sending.Of(price), cores);
  if (price.busy_seconds > work.seconds) work.beside = work.seconds / price.busy_seconds;
  return work;
}

double ExchangeJobs::seconds() const {
  double sum = 0;
  for (const CommunicationJob& job : buckets) sum += job.seconds();
  return sum;
}

ExchangeJobs MakeExchangeJobs(std::span<const Parameter> parameters, const PlannedScheme& scheme,
                              const BucketOptions& options, const ExchangeWorld& world,
                              CollectivePrices* prices) {
  ExchangeJobs jobs;
  size_t next = 0;
  for (const GradientBucket& bucket : MakeGradientBuckets(parameters, options)) {
    BucketJob job(scheme, world, prices, &jobs.sent_bytes);
    for (size_t i = 0; i < bucket.parameters; ++i, ++next) job.Add(next, parameters[next]);
    jobs.buckets.push_back(job.Finish(bucket.range));
    jobs.last_parameter.push_back(next - 1);
  }
  return jobs;
}

double LeastExchangeSeconds(std::span<const Parameter> parameters, const PlannedScheme& scheme,
                            const ExchangeWorld& world, int hosts) {
  if (world.ranks == 1) return 0;
  const auto fraction = [](int n) { return static_cast<double>(n - 1) / n; };
  const double crossing = fraction(hosts > 1 ? hosts : world.ranks) / fraction(world.ranks);
  double seconds = 0;
  for (size_t i = 0; i < parameters.size(); ++i) {
    const GradientShape shape = GradientShapeOf(parameters[i].spec);
    const LayerScheme& layer = scheme.layers[i];
    const LayerRoute route = RouteOf(scheme, shape, i, world);
    const auto bytes = static_cast<double>(ReceivedBytes(route, layer, shape, world.ranks));
    seconds += bytes * crossing * world.seconds_per_byte;
    if (route != LayerRoute::kDense) {
      seconds += scheme.coding[i].encode_seconds / static_cast<double>(layer.every_steps);
    }
  }
  return seconds;
}

}  // namespace ringtail
