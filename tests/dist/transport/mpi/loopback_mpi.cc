#include "tests/dist/transport/mpi/loopback_mpi.h"

#include <cstring>
#include <deque>
#include <map>
#include <tuple>

#include "core/check.h"
#include "core/mutex.h"
#include "dist/membership/identity/host_identity.h"
#include "dist/transport/mpi/mpi_transport.h"
#include "dist/transport/routed_transport.h"

namespace ringtail {

struct LoopbackMpi::Hub {
  struct Operation {
    int rank;
    void* context;
    std::span<const std::byte> source;
    std::span<std::byte> destination;
  };
  // Of one direction between two ranks, on one lane.
  struct Channel {
    std::deque<Operation> sends, receives;
  };

  const int ranks;
  Mutex mutex;
  std::map<std::tuple<int, int, int>, Channel> channels RT_GUARDED_BY(mutex);  // from, to, lane
  std::vector<std::deque<MpiPort::Finished>> finished RT_GUARDED_BY(mutex);    // by rank
  std::vector<std::string> errors RT_GUARDED_BY(mutex);                        // by rank
  std::vector<bool> gone RT_GUARDED_BY(mutex);  // by rank: what is sent to it is lost

  explicit Hub(int n) : ranks(n), finished(n), errors(n), gone(n) {}

  void Match(Channel* channel) RT_REQUIRES(mutex) {
    while (!channel->sends.empty() && !channel->receives.empty()) {
      const Operation send = channel->sends.front(), receive = channel->receives.front();
      channel->sends.pop_front();
      channel->receives.pop_front();
      RT_CHECK(send.source.size() <= receive.destination.size(), "MPI would truncate it");
      if (!send.source.empty()) {
        std::memcpy(receive.destination.data(), send.source.data(), send.source.size());
      }
      finished[send.rank].push_back({.context = send.context});
      // The last first: MPI promises no order of completions.
      finished[receive.rank].push_front({.context = receive.context, .bytes = send.source.size()});
    }
  }
};

namespace {

class Port : public MpiPort {
 public:
  Port(std::shared_ptr<LoopbackMpi::Hub> hub, int rank) : hub_(std::move(hub)), rank_(rank) {}
  // The memory of what is pending goes with the transport.
  ~Port() override { Forget(); }

  int rank() const override { return rank_; }
  int size() const override { return hub_->ranks; }

  std::string Send(int peer, int lane, std::span<const std::byte> bytes, void* context) override {
    MutexLock lock(&hub_->mutex);
    if (hub_->gone[peer]) {
      hub_->finished[rank_].push_back({.context = context});
      return hub_->errors[rank_];
    }
    auto& channel = hub_->channels[{rank_, peer, lane}];
    channel.sends.push_back({.rank = rank_, .context = context, .source = bytes});
    hub_->Match(&channel);
    return hub_->errors[rank_];
  }

  std::string Receive(int peer, int lane, std::span<std::byte> bytes, void* context) override {
    MutexLock lock(&hub_->mutex);
    auto& channel = hub_->channels[{peer, rank_, lane}];
    channel.receives.push_back({.rank = rank_, .context = context, .destination = bytes});
    hub_->Match(&channel);
    return hub_->errors[rank_];
  }

  std::string Poll(std::span<Finished> finished, size_t* count) override {
    MutexLock lock(&hub_->mutex);
    auto& mine = hub_->finished[rank_];
    for (*count = 0; *count < finished.size() && !mine.empty(); mine.pop_front()) {
      finished[(*count)++] = mine.front();
    }
    return hub_->errors[rank_];
  }

  std::string Leave() override { return ""; }

 private:
  void Forget() {
    MutexLock lock(&hub_->mutex);
    const auto is_mine = [&](const auto& operation) { return operation.rank == rank_; };
    hub_->gone[rank_] = true;
    for (auto& [key, channel] : hub_->channels) {
      std::erase_if(channel.sends, is_mine);
      std::erase_if(channel.receives, is_mine);
      if (std::get<1>(key) != rank_) continue;
      for (const auto& send : channel.sends)
        hub_->finished[send.rank].push_back({.context = send.context});
      channel.sends.clear();
    }
  }

  const std::shared_ptr<LoopbackMpi::Hub> hub_;
  const int rank_;
};

World Connect(LoopbackMpi* mpi, const PeerTable& peers) {
  World world(peers.world_size());
  OnEveryRank(peers.world_size(), [&](int rank) {
    PeerTable own = peers;
    own.rank = rank;
    own.generation = 1;
    // Ranks of a test go one by one.
    const MpiLimits limits{.leave = std::chrono::milliseconds(1)};
    const auto listener = ListenMpi(peers.addresses[rank], limits, mpi->OpenerOf(rank));
    world[rank] = std::move(*ConnectRouted(listener.get(), own));
  });
  return world;
}

}  // namespace

LoopbackMpi::LoopbackMpi(int ranks) : hub_(std::make_shared<Hub>(ranks)) {}
LoopbackMpi::~LoopbackMpi() = default;

MpiPortOpener LoopbackMpi::OpenerOf(int rank) {
  return [hub = hub_, rank](std::string*) { return std::make_unique<Port>(hub, rank); };
}

void LoopbackMpi::Break(int rank, const std::string& error) {
  MutexLock lock(&hub_->mutex);
  hub_->errors[rank] = error;
}

World MakeLoopbackMpiWorld(int world_size) {
  LoopbackMpi mpi(world_size);
  return JoinLoopbackMpi(&mpi, world_size);
}

World JoinLoopbackMpi(LoopbackMpi* mpi, int world_size) {
  return Connect(mpi, {.addresses = std::vector<std::string>(world_size, "here:0")});
}

World MakeTwoHostMpiWorld(int world_size) {
  LoopbackMpi mpi(world_size);
  PeerTable peers;
  for (int rank = 0; rank < world_size; ++rank) {
    peers.addresses.emplace_back(rank % 2 == 0 ? "here:0" : "there:0");
    peers.memory_keys.push_back(rank % 2 == 0 ? SharedMemoryKey() : "another");
  }
  return Connect(&mpi, peers);
}

}  // namespace ringtail
