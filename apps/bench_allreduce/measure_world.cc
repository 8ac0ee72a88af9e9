#include "apps/bench_allreduce/measure_world.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <memory>
#include <numeric>
#include <span>
#include <utility>

#include "apps/bench_allreduce/test_sums.h"
#include "apps/byte_text.h"
#include "core/aligned_buffer.h"
#include "core/machine/processor_time.h"
#include "core/stopwatch.h"
#include "core/units.h"
#include "dist/communicator.h"
#include "dist/probe.h"

namespace ringtail {
namespace {

constexpr int64_t kWarmups = 3, kFewestRuns = 5, kMostRuns = 10'000;

struct Runs {
  std::vector<double> seconds;  // of this rank
  double processor_seconds = 0;
};

// The measurement of one algorithm with one number of bytes, on one rank.
class Line {
 public:
  Line(Communicator* ranks, Operation operation, int64_t bytes)
      : ranks_(ranks),
        gathers_(operation == Operation::kAllgather),
        sums_(ranks->rank(), ranks->world_size()),
        buffer_(bytes) {}

  StatusOr<Runs> Measure(double seconds);
  // The slowest rank's milliseconds in each run; the same on all ranks.
  StatusOr<std::vector<double>> SlowestMilliseconds(const Runs& own);
  StatusOr<double> MeanOfRanks(double own);

 private:
  Status RunOnce(Runs* runs);
  StatusOr<bool> Continue(bool wish);  // as rank 0 decides

  Communicator* const ranks_;
  const bool gathers_;
  const TestSums sums_;
  const AlignedBuffer buffer_;
};

Status Line::RunOnce(Runs* runs) {
  const std::span<float> array = buffer_.floats();
  sums_.Fill(array);
  RT_RETURN_IF_ERROR(ranks_->Barrier());
  const double processor_start = ProcessSeconds();
  const Stopwatch stopwatch;
  RT_RETURN_IF_ERROR(gathers_ ? ranks_->AllGather(array) : ranks_->AllReduce(array));
  runs->seconds.push_back(stopwatch.Seconds());
  runs->processor_seconds += ProcessSeconds() - processor_start;
  Status right = gathers_ ? sums_.CheckGathered(array) : sums_.Check(array);
  if (!right.ok()) ranks_->Abort(right);
  return right;
}

StatusOr<bool> Line::Continue(bool wish) {
  std::array<int64_t, 1> flag{wish ? 1 : 0};
  RT_RETURN_IF_ERROR(ranks_->Broadcast(std::span<int64_t>(flag), 0));
  return flag[0] != 0;
}

StatusOr<Runs> Line::Measure(double seconds) {
  Runs warmups, runs;
  for (int64_t i = 0; i < kWarmups; ++i) RT_RETURN_IF_ERROR(RunOnce(&warmups));
  const Stopwatch stopwatch;
  for (int64_t i = 0; i < kMostRuns; ++i) {
    RT_ASSIGN_OR_RETURN(const bool more,
                        Continue(i < kFewestRuns || stopwatch.Seconds() < seconds));
    if (!more) break;
    RT_RETURN_IF_ERROR(RunOnce(&runs));
  }
  return runs;
}

StatusOr<std::vector<double>> Line::SlowestMilliseconds(const Runs& own) {
  const size_t runs = own.seconds.size();
  std::vector<double> all(runs * ranks_->world_size()), slowest(runs);
  std::ranges::copy(own.seconds, all.begin() + static_cast<int64_t>(runs) * ranks_->rank());
  RT_RETURN_IF_ERROR(ranks_->AllGather(std::span(all)));
  for (size_t i = 0; i < all.size(); ++i) {
    slowest[i % runs] = std::max(slowest[i % runs], all[i] * kMsPerSecond);
  }
  return slowest;
}

StatusOr<double> Line::MeanOfRanks(double own) {
  std::vector<double> all(ranks_->world_size());
  all[ranks_->rank()] = own;
  RT_RETURN_IF_ERROR(ranks_->AllGather(std::span(all)));
  return std::accumulate(all.begin(), all.end(), 0.0) / static_cast<double>(all.size());
}

StatusOr<AllreduceTiming> MeasureLine(Communicator* ranks, int64_t bytes,
                                      const MeasureOptions& options) {
  Line line(ranks, options.operation, bytes);
  RT_ASSIGN_OR_RETURN(const Runs own, line.Measure(options.seconds));
  RT_ASSIGN_OR_RETURN(const std::vector<double> slowest, line.SlowestMilliseconds(own));
  const double gigabytes = static_cast<double>(bytes * own.seconds.size()) / kGiga;
  const auto count = bytes / static_cast<int64_t>(sizeof(float));
  AllreduceTiming timing{.operation = options.operation,
                         .chosen = std::string(options.operation == Operation::kAllgather
                                                   ? ranks->GatherChoice(count, sizeof(float)).name
                                                   : ranks->Choice(bytes).algorithm->name),
                         .world = ranks->world_size(),
                         .bytes = bytes};
  SetPercentiles(slowest, &timing);
  RT_ASSIGN_OR_RETURN(timing.cpu_s_per_gb, line.MeanOfRanks(own.processor_seconds / gigabytes /
                                                            options.ranks_in_process));
  return timing;
}

// `probed` with the link speed given by the user, if any.
NetworkModel LinksForIdeal(NetworkModel probed, double gbit_per_s) {
  if (gbit_per_s <= 0) return probed;
  const double seconds_per_byte = kBitsPerByte / (gbit_per_s * kGiga);
  probed.within_host.seconds_per_byte = seconds_per_byte;
  probed.between_hosts.seconds_per_byte = seconds_per_byte;
  return probed;
}

}  // namespace

Status MeasureWorld(Transport* transport, const Topology& topology, const MeasureOptions& options,
                    const MeasureObserver& observer) {
  RT_ASSIGN_OR_RETURN(const NetworkModel network, ProbeNetwork(transport, topology));
  const NetworkModel links = LinksForIdeal(network, options.link_gbit_per_s);
  const bool observed = transport->rank() == 0;
  if (observed) observer.on_network(network);
  const bool gathers = options.operation == Operation::kAllgather;
  ChannelAllocator channels;
  for (const std::string& algorithm : options.algorithms) {
    Communicator::Options communicator;
    (gathers ? communicator.allgather : communicator.algorithm) = algorithm;
    communicator.network = network;
    communicator.channel = channels.Next();
    RT_ASSIGN_OR_RETURN(const auto ranks, Communicator::Create(transport, topology, communicator));
    for (const int64_t bytes : options.bytes) {
      auto timing = MeasureLine(ranks.get(), bytes, options);
      if (!timing.ok()) {
        return timing.status().Annotate(fmt::format("{}, {}", algorithm, FormatBytes(bytes)));
      }
      timing->algorithm = algorithm;
      timing->ideal_ms = IdealMilliseconds(topology, links, bytes, options.operation);
      if (observed) observer.on_timing(*timing);
    }
  }
  return OkStatus();
}

}  // namespace ringtail
