#include "dist/membership/join.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <map>
#include <thread>
#include <utility>

#include "core/logging.h"
#include "core/stop_signal.h"
#include "dist/membership/identity/host_identity.h"
#include "dist/membership/identity/rank_facts.h"
#include "dist/membership/master_address.h"
#include "dist/membership/rendezvous_client.h"
#include "dist/membership/session.h"
#include "dist/transport/door/socket_address.h"
#include "dist/transport/frames/keyed_hash.h"
#include "dist/transport/in_process.h"
#include "dist/transport/routed_transport.h"
#include "dist/transport/transports.h"

namespace ringtail {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds kRetryInterval{100};
// After this time the user is told what this rank is waiting for.
constexpr std::chrono::seconds kQuietWait{3};

Status CheckOptions(const JoinOptions& options) {
  const RankIdentity& identity = options.identity;
  if (identity.world_size < 1 || identity.world_size > kMaxWorldSize || identity.rank < 0 ||
      identity.rank >= identity.world_size) {
    return InvalidArgument(
        fmt::format("rank {} of {} ({}) cannot be: ranks are 0 to world - 1, and "
                    "a world has at most {}",
                    identity.rank, identity.world_size, identity.source, kMaxWorldSize));
  }
  RT_RETURN_IF_ERROR(CheckFields(options.fingerprint).Annotate("the job's fingerprint"));
  RT_RETURN_IF_ERROR(CheckFields(options.about).Annotate("what this rank says about itself"));
  if (identity.world_size == 1) return {};
  if (identity.master_address.empty() || identity.master_port < 1 || identity.master_port > 65535) {
    return InvalidArgument(fmt::format(
        "rank {} of {} ({}) does not know where rank 0 is: give --master HOST:PORT, or MASTER_ADDR "
        "and MASTER_PORT",
        identity.rank, identity.world_size, identity.source));
  }
  return CheckSecurity(options.security, options.token, identity.master_address);
}

// The monitor must be able to tell the others which rank is silent, over connections that still
// hold.
constexpr int kSilencesUntilLost = 3;

uint32_t ChooseGeneration() {
  const std::string random = RandomBytes(4);
  uint32_t generation = 0;
  for (const char byte : random) generation = generation << 8 | static_cast<unsigned char>(byte);
  return std::max(generation, 1U);
}

RankFacts FactsOf(const JoinOptions& options) {
  const RankIdentity& identity = options.identity;
  RankFacts facts{.rank = identity.rank,
                  .world_size = identity.world_size,
                  .generation = options.generation,
                  .instance = RandomBytes(kNonceBytes),
                  .host_name = HostName(),
                  .host_key = options.host_key.empty() ? HostKey() : options.host_key,
                  .memory_key = options.shared_memory ? SharedMemoryKey() : "",
                  .pid = getpid(),
                  .own_address = "",
                  .master_address = "",
                  .fingerprint = {{"protocol version", std::to_string(kJoinProtocolVersion)},
                                  {"build version", options.build},
                                  {"transport", DistConfig::Transport_Name(options.transport)}},
                  .about = options.about};
  facts.fingerprint.insert(facts.fingerprint.end(), options.fingerprint.begin(),
                           options.fingerprint.end());
  if (facts.rank == 0 && facts.generation == 0) facts.generation = ChooseGeneration();
  return facts;
}

// One JoinWorld under way.
class Joining {
 public:
  Joining(const JoinOptions& options, TlsIdentity tls)
      : options_(options),
        facts_(FactsOf(options)),
        start_(Clock::now()),
        deadline_(start_ + options.join_timeout) {
    wire_.tls = std::move(tls);
    wire_.connect_timeout = options.join_timeout;
    wire_.peers = facts_.world_size;
    // Heartbeats say which ranks live; on a link that loses packets TCP may retransmit for longer
    // than ranks may be silent.
    wire_.keepalive_timeout =
        std::max(wire_.keepalive_timeout, kSilencesUntilLost * options.silence_limit);
  }

  StatusOr<JoinedWorld> Run() {
    JoinedWorld world;
    if (facts_.rank == 0) {
      RT_ASSIGN_OR_RETURN(world.rendezvous, StartRendezvous());
    }
    StatusOr<WorldTable> table = AskUntilAnswered();
    if (!table.ok()) {
      const bool stopped = table.status().code() == StatusCode::kCancelled && StopSignal() != 0;
      if (stopped) {
        return table.status().Annotate(fmt::format("rank {} waited for the others", facts_.rank));
      }
      if (world.rendezvous != nullptr) world.rendezvous->AwaitRefusals(options_.refusal_grace);
      return table.status();
    }
    RT_RETURN_IF_ERROR(Connect(*table, &world));
    return world;
  }

 private:
  const std::string& host() const { return options_.identity.master_address; }
  int port() const { return options_.identity.master_port; }
  std::string Waited() const {
    return fmt::format("{} s", std::chrono::duration<double>(options_.join_timeout).count());
  }

  StatusOr<std::unique_ptr<RendezvousServer>> StartRendezvous() {
    StatusOr<std::string> address = AddressToListenAt(host(), start_ + options_.name_timeout);
    while (address.status().code() == StatusCode::kNotFound &&
           Clock::now() + kRetryInterval < start_ + options_.name_timeout) {
      std::this_thread::sleep_for(kRetryInterval);
      RT_RETURN_IF_ERROR(CheckNotStopped());
      address = AddressToListenAt(host(), start_ + options_.name_timeout);
    }
    if (address.status().code() == StatusCode::kNotFound) return UnknownName(address.status());
    if (!address.ok()) return address.status();
    return RendezvousServer::Start({.address = *address,
                                    .port = port(),
                                    .wire = wire_,
                                    .token = options_.token,
                                    .facts = facts_,
                                    .join_timeout = options_.join_timeout});
  }

  Status UnknownName(const Status& status) const {
    return NotFound(fmt::format(
        "the host of rank 0 is not known here ({}): is MASTER_ADDR (or --master) right?",
        status.message()));
  }

  // Until the rendezvous has answered, even if with a refusal.
  StatusOr<WorldTable> AskUntilAnswered() {
    bool told = false;
    for (;;) {
      RendezvousAnswer answer = AskOnce();
      if (answer.status.ok()) return std::move(answer.world);
      if (answer.final) return answer.status;
      RT_RETURN_IF_ERROR(CheckNotStopped());
      if (Clock::now() + kRetryInterval >= deadline_) {
        return Status(StatusCode::kUnavailable,
                      fmt::format("rank {} has found no rank 0 at {} within {}: {}", facts_.rank,
                                  JoinHostPort(host(), port()), Waited(), answer.status.message()));
      }
      if (!told && Clock::now() > start_ + kQuietWait) {
        LogWarning(fmt::format("rank {} is waiting for rank 0 at {}: {}", facts_.rank,
                               JoinHostPort(host(), port()), answer.status.message()));
        told = true;
      }
      std::this_thread::sleep_for(kRetryInterval);
    }
  }

  RendezvousAnswer AskOnce() {
    const StatusOr<WayToMaster> way = FindMaster(host(), port(), deadline_);
    if (!way.ok()) return NoWay(way.status());
    facts_.own_address = way->own_address;
    facts_.master_address = way->master.address;
    return AskRendezvous({.rendezvous = way->master,
                          .address = JoinHostPort(way->master.address, port()),
                          .wire = wire_,
                          .token = options_.token,
                          .facts = facts_,
                          .listen = [this](const std::string& address) { return Listen(address); },
                          .deadline = deadline_});
  }

  RendezvousAnswer NoWay(const Status& status) const {
    const bool last = Clock::now() + kRetryInterval >= start_ + options_.name_timeout;
    switch (status.code()) {
      case StatusCode::kNotFound:
        return {.status = UnknownName(status), .final = last};
      case StatusCode::kFailedPrecondition:
        return {.status = status.Annotate(fmt::format("rank {} cannot reach rank 0 at {}",
                                                      facts_.rank, JoinHostPort(host(), port()))),
                .final = last};
      default:
        return {.status = status.Annotate("nothing listens there"), .final = false};
    }
  }

  // At any port of `address`.
  StatusOr<std::string> Listen(const std::string& address) {
    listener_.reset();
    RT_ASSIGN_OR_RETURN(listener_, ListenForPeers(options_.transport, address, wire_));
    return listener_->address();
  }

  Status Connect(const WorldTable& table, JoinedWorld* world) {
    world->rank = facts_.rank;
    world->generation = table.generation;
    std::map<std::string, int> hosts;
    std::vector<std::string> memory_keys;
    for (int rank = 0; rank < facts_.world_size; ++rank) {
      const RankFacts& facts = table.ranks[rank];
      const int host = hosts.emplace(facts.host_key, hosts.size()).first->second;
      world->topology.host_of_rank.push_back(host);
      memory_keys.push_back(facts.memory_key);
      world->ranks.push_back({.host_name = facts.host_name,
                              .pid = facts.pid,
                              .address = table.addresses[rank],
                              .host = host,
                              .about = facts.about});
    }
    const PeerTable peers{.rank = facts_.rank,
                          .generation = table.generation,
                          .addresses = table.addresses,
                          .secret = GenerationSecret(options_.token, table.generation, table.salt),
                          .memory_keys = std::move(memory_keys)};
    RT_ASSIGN_OR_RETURN(world->transport,
                        ConnectRouted(listener_.get(), peers, options_.join_timeout));
    listener_.reset();
    return {};
  }

  const JoinOptions& options_;
  RankFacts facts_;
  TransportOptions wire_;
  const Clock::time_point start_, deadline_;
  std::unique_ptr<TransportListener> listener_;
};

// Needs no other rank, and so no address and no secret.
JoinedWorld WorldOfOne(const JoinOptions& options) {
  const RankFacts facts = FactsOf(options);
  JoinedWorld world{.rank = 0, .generation = facts.generation};
  world.topology.host_of_rank = {0};
  world.ranks.push_back({.host_name = facts.host_name, .pid = facts.pid, .about = facts.about});
  world.transport = std::move(MakeInProcessWorld(1).front());
  return world;
}

}  // namespace

std::string BuildVersion() { return RT_VERSION; }

std::string JoinedWorld::Describe(int rank) const {
  return fmt::format("rank {} ({}, pid {})", rank, ranks[rank].host_name, ranks[rank].pid);
}

StatusOr<JoinedWorld> JoinWorld(const JoinOptions& options) {
  RT_RETURN_IF_ERROR(CheckOptions(options));
  if (options.identity.world_size == 1) return WorldOfOne(options);
  RT_ASSIGN_OR_RETURN(TlsIdentity tls, LoadTls(options.security));
  return Joining(options, std::move(tls)).Run();
}

}  // namespace ringtail
