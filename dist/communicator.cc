#include "dist/communicator.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <numeric>
#include <utility>
#include <vector>

#include "core/check.h"
#include "dist/collectives/algorithms/all_to_all.h"
#include "dist/collectives/algorithms/binomial_tree.h"
#include "dist/collectives/algorithms/bruck.h"
#include "dist/collectives/algorithms/ring.h"
#include "dist/collectives/barrier.h"

namespace ringtail {
namespace {

struct NamedPlan {
  std::string name;
  Plan plan;
};

int64_t SentElements(const Plan& plan) {
  int64_t elements = 0;
  for (const Round& round : plan.rounds) {
    for (const Step& step : round.steps) {
      if (step.kind == StepKind::kSend) elements += step.range.count;
    }
  }
  return elements;
}

Plan CopyPlan(int rank, int from, int to, int64_t count) {
  const ElementRange all = {.offset = 0, .count = count};
  Plan plan;
  if (rank == from) plan.AddRound({Step::Send(to, all)});
  if (rank == to) plan.AddRound({Step::ReceiveCopy(from, all)});
  return plan;
}

std::span<std::byte> BytesOf(std::string* text) {
  return std::as_writable_bytes(std::span(text->data(), text->size()));
}

}  // namespace

StatusOr<std::unique_ptr<Communicator>> Communicator::Create(Transport* transport,
                                                             const Topology& topology,
                                                             const Options& options) {
  return CreateOver(RankGroup::World(transport->world_size()), transport, topology, options);
}

StatusOr<std::vector<std::unique_ptr<Communicator>>> Communicator::CreateForGroups(
    Transport* transport, const Topology& topology, std::span<const RankGroup> groups,
    Options options, ChannelAllocator* channels) {
  std::vector<std::unique_ptr<Communicator>> communicators(groups.size());
  for (size_t i = 0; i < groups.size(); ++i) {
    options.channel = channels->Next();
    if (!groups[i].MemberOf(transport->rank())) continue;
    RT_ASSIGN_OR_RETURN(communicators[i], CreateOver(groups[i], transport, topology, options));
  }
  return communicators;
}

StatusOr<std::unique_ptr<Communicator>> Communicator::CreateOver(RankGroup group,
                                                                 Transport* transport,
                                                                 const Topology& topology,
                                                                 const Options& options) {
  RT_CHECK(topology.world() == transport->world_size(),
           fmt::format("a topology of {} ranks for a transport of {}", topology.world(),
                       transport->world_size()));
  Topology within = group.Within(topology);
  RT_ASSIGN_OR_RETURN(auto selector,
                      AlgorithmSelector::Create(options.algorithm, within, options.network));
  RT_ASSIGN_OR_RETURN(const AllgatherAlgorithm* const allgather, FindAllgather(options.allgather));
  return std::unique_ptr<Communicator>(new Communicator(
      std::move(group), transport, std::move(within), std::move(selector), allgather, options));
}

Communicator::Communicator(RankGroup group, Transport* transport, Topology topology,
                           AlgorithmSelector selector, const AllgatherAlgorithm* allgather,
                           const Options& options)
    : transport_(transport),
      group_(std::move(group)),
      rank_(group_.MemberOf(transport->rank()).value()),
      topology_(std::move(topology)),
      network_(options.network),
      allgather_(allgather),
      selector_(std::move(selector)),
      executor_(transport, options.executor),
      next_collective_(options.channel.FirstCollective()) {}

const Communicator::Call& Communicator::CallOf(const Key& key) {
  const auto known = calls_.find(key);
  if (known != calls_.end()) return known->second;
  return calls_.emplace(key, MakeCall(key)).first->second;
}

Communicator::Call Communicator::MakeCall(const Key& key) {
  const auto& [kind, root, type, count] = key;
  const auto element_bytes = static_cast<int64_t>(ElementBytes(type));
  const auto make = [&, kind = kind, root = root, count = count]() -> NamedPlan {
    switch (kind) {
      case Kind::kAllReduce: {
        const AllreduceAlgorithm& algorithm = *Choice(count * element_bytes).algorithm;
        return {fmt::format("allreduce, {}", algorithm.name),
                algorithm.plan(rank(), topology_, count)};
      }
      case Kind::kReduceScatter:
        return {"reduce-scatter", RingReduceScatter(rank(), world_size(), count)};
      case Kind::kAllGather: {
        const AllgatherAlgorithm& algorithm = GatherChoice(count, element_bytes);
        return {fmt::format("allgather, {}", algorithm.name),
                algorithm.plan(rank(), world_size(), count)};
      }
      case Kind::kAllToAll:
        return {"all-to-all", ringtail::AllToAll(rank(), world_size(), count / (2 * world_size()))};
      case Kind::kCopy:
        return {"copy", CopyPlan(rank(), root / world_size(), root % world_size(), count)};
      case Kind::kBroadcast:
        return {fmt::format("broadcast from {}", root),
                BinomialBroadcast(rank(), world_size(), count, root)};
      case Kind::kBarrier:
        return {"barrier", DisseminationBarrier(rank(), world_size())};
    }
    RT_CHECK(false, "every kind of collective has a plan");
  };
  NamedPlan named = make();
  const int64_t sent_bytes = SentElements(named.plan) * element_bytes;
  return {.schedule = MakeSchedule(std::move(named.plan), {.name = std::move(named.name),
                                                           .type = type,
                                                           .count = count,
                                                           .in_place = kind != Kind::kAllToAll}),
          .sent_bytes = sent_bytes};
}

Schedule Communicator::MakeSchedule(Plan plan, Collective collective) const {
  return Schedule(WithPeers(std::move(plan), group_.ranks()), transport_->rank(),
                  std::move(collective));
}

Status Communicator::CheckLength(int64_t bytes, int root, int64_t max_bytes) const {
  if (bytes >= 0 && bytes <= max_bytes) return OkStatus();
  return ResourceExhausted(fmt::format("rank {} would send {} bytes where at most {} are expected",
                                       group_.ranks()[static_cast<size_t>(root)], bytes,
                                       max_bytes));
}

StatusOr<std::set<std::string>> Communicator::KeepAlgorithms(
    const std::map<int64_t, std::string>& selected) {
  RT_ASSIGN_OR_RETURN(std::set<std::string> unsuited, selector_.Keep(selected));
  std::erase_if(calls_,
                [](const auto& call) { return std::get<Kind>(call.first) == Kind::kAllReduce; });
  return unsuited;
}

const AllgatherAlgorithm& Communicator::GatherChoice(int64_t count, size_t element_bytes) const {
  return allgather_ != nullptr ? *allgather_
                               : CheaperAllgather(topology_, count, element_bytes, network_);
}

Status Communicator::Barrier() {
  std::array<std::byte, 1> token{};
  return Run(Kind::kBarrier, 0, std::span<std::byte>(token));
}

StatusOr<std::string> Communicator::BroadcastText(std::string text, int root, int64_t max_bytes) {
  std::array<int64_t, 1> bytes{static_cast<int64_t>(text.size())};
  RT_RETURN_IF_ERROR(Broadcast(std::span<int64_t>(bytes), root));
  RT_RETURN_IF_ERROR(CheckLength(bytes[0], root, max_bytes));
  text.resize(bytes[0]);
  RT_RETURN_IF_ERROR(Broadcast(BytesOf(&text), root));
  return text;
}

StatusOr<std::vector<std::string>> Communicator::AllGatherText(const std::string& text,
                                                               int64_t max_bytes) {
  std::vector<int64_t> bytes(world_size());
  bytes[rank()] = static_cast<int64_t>(text.size());
  RT_RETURN_IF_ERROR(AllGather(std::span(bytes)));
  for (int root = 0; root < world_size(); ++root) {
    RT_RETURN_IF_ERROR(CheckLength(bytes[root], root, max_bytes));
  }
  std::vector<int64_t> ends(world_size());
  std::inclusive_scan(bytes.begin(), bytes.end(), ends.begin());
  const auto begin_of = [&](int root) { return ends[root] - bytes[root]; };
  std::string all(ends.back(), '\0');
  std::ranges::copy(text, all.begin() + begin_of(rank()));
  Plan plan = BruckAllgather(rank(), ends);
  sent_bytes_ += SentElements(plan);
  // Not kept: the next texts have other lengths.
  const Schedule schedule = MakeSchedule(
      std::move(plan),
      {.name = "allgather of texts", .type = ElementType::kByte, .count = ends.back()});
  RT_RETURN_IF_ERROR(executor_.Run(schedule, next_collective_++, BytesOf(&all)));
  std::vector<std::string> texts;
  texts.reserve(world_size());
  for (int root = 0; root < world_size(); ++root) {
    texts.push_back(all.substr(begin_of(root), bytes[root]));
  }
  return texts;
}

}  // namespace ringtail
