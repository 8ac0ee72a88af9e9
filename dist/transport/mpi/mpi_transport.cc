#include "dist/transport/mpi/mpi_transport.h"

#include <fmt/format.h>
#include <sys/prctl.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <deque>
#include <optional>
#include <thread>
#include <utility>

#include "core/aligned_buffer.h"
#include "core/check.h"
#include "core/machine/thread_budget.h"
#include "core/mutex.h"
#include "core/stop_signal.h"
#include "dist/transport/frames/control_payload.h"
#include "dist/transport/frames/peer_messages.h"
#include "dist/transport/operation.h"

namespace ringtail {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::microseconds;

constexpr int kLanes = 2;  // 0: everything else, 1: urgent messages
constexpr int kUrgentLane = 1;
constexpr int kChunksAhead = 2;
// Data in a chunk, by lane, and what TakeFrames may add to it: headers, control frames.
constexpr std::array<size_t, kLanes> kChunkBytes = {256 << 10, 4 << 10};
constexpr size_t kFramesOverhead = 20 << 10;

constexpr microseconds kShortestPause{10}, kLongestPause{1000};
// For the peers to answer an abort, so that it has got through; and for what is said to be sent.
constexpr std::chrono::seconds kAbortLimit{2}, kWriteLimit{10};

// Memory of one chunk.
class Chunk {
 public:
  explicit Chunk(size_t capacity) : memory_(capacity) {}
  std::span<std::byte> bytes() { return {memory_.data(), memory_.size_bytes()}; }
  std::span<const std::byte> used() { return bytes().first(used_); }
  void SetUsed(size_t bytes) { used_ = bytes; }
  void Append(std::span<const std::byte> bytes) {
    RT_CHECK(used_ + bytes.size() <= memory_.size_bytes(), "frames fit into their chunk");
    if (!bytes.empty()) std::memcpy(memory_.data() + used_, bytes.data(), bytes.size());
    used_ += bytes.size();
  }

 private:
  AlignedBuffer memory_;
  size_t used_ = 0;
};

// Between this rank and one peer, one way of the two kinds of messages. Of the thread rt-mpi.
struct Lane {
  size_t index = 0;  // among all lanes
  int peer = 0, number = 0;
  PeerMessages* messages = nullptr;
  struct Pending {
    uint64_t id = 0;
    Chunk* chunk = nullptr;
    bool finished = false;
  };
  std::vector<std::unique_ptr<Chunk>> chunks;  // all
  std::vector<Chunk*> free;                    // to write the next frames into
  std::deque<Pending> sending, receiving;      // in the order in which they were started
};

// What the transport and its thread share; it lives as long as the longer of them.
class Engine {
 public:
  Engine(const MpiWorld& world, MpiPortOpener open, TransportObserver* observer)
      : world_(world), open_(std::move(open)), observer_(observer) {
    for (int peer = 0; peer < world_.world_size; ++peer) {
      for (int lane = 0; lane < kLanes; ++lane) {
        messages_[lane].push_back(peer == world_.rank ? nullptr : MakeMessages(peer));
        if (peer == world_.rank) continue;
        lanes_.push_back(std::make_unique<Lane>());
        lanes_.back()->index = lanes_.size() - 1;
        lanes_.back()->peer = peer;
        lanes_.back()->number = lane;
        lanes_.back()->messages = messages_[lane][peer].get();
      }
    }
  }

  const MpiWorld& world() const { return world_; }
  const std::shared_ptr<Ending>& ending() const { return ending_; }
  PeerMessages& messages(int peer, const MessageTag& tag) const {
    return *messages_[IsUrgent(tag) ? kUrgentLane : 0][peer];
  }
  Traffic traffic(int peer) const { return messages_[0][peer]->traffic(); }

  // There may be something to write.
  void Wake() RT_EXCLUDES(mutex_) {
    MutexLock lock(&mutex_);
    work_ = true;
    if (sleeping_) changed_.NotifyAll();
  }

  void End(const Status& cause, const Status& seen_by_peers) {
    EndWith(cause, ControlFrame(FrameKind::kAbort, world_.generation, AbortPayload(seen_by_peers)));
  }
  void Leave() {
    EndWith({StatusCode::kUnavailable, fmt::format("rank {} has left the world", world_.rank)},
            ControlFrame(FrameKind::kGoodbye, world_.generation));
  }

  void Run() RT_EXCLUDES(mutex_);  // body of rt-mpi
  // What became of MPI's beginning; not within the limit: DeadlineExceeded.
  Status AwaitBegin() RT_EXCLUDES(mutex_);

 private:
  std::unique_ptr<PeerMessages> MakeMessages(int peer) const {
    auto messages = std::make_unique<PeerMessages>(peer, world_.generation, ending_);
    const bool one_host = !world_.hosts.empty() && !world_.hosts[peer].empty() &&
                          world_.hosts[peer] == world_.hosts[world_.rank];
    if (one_host) messages->SkipChecksums();
    return messages;
  }

  void EndWith(const Status& cause, const OutgoingFrame& last) RT_EXCLUDES(mutex_);
  Status Begin();
  void Work();
  // How this rank's part in the world has ended.
  struct Ended {
    bool in_peace = false;
    Clock::time_point leave_at;  // from then on it waits for no rank
  };
  std::optional<Ended> ended() RT_EXCLUDES(mutex_) {
    MutexLock lock(&mutex_);
    return ended_;
  }
  bool MayStop(const Ended& ended) const;
  bool AllPeersHaveLeft() const;
  Status Write(Lane* lane, bool* any);
  Status Read(Lane* lane, bool* any);
  Status StartReceive(Lane* lane, Chunk* chunk);
  Status Poll(bool* any);
  void OnPeerError(int peer, const Status& status);
  void Pause(Clock::time_point last_move) RT_EXCLUDES(mutex_);
  static Status FromMpi(const std::string& error) {
    return error.empty() ? Status() : Status(StatusCode::kUnavailable, error);
  }

  const MpiWorld world_;
  const MpiPortOpener open_;
  TransportObserver* const observer_;
  const std::shared_ptr<Ending> ending_ = std::make_shared<Ending>();
  std::array<std::vector<std::unique_ptr<PeerMessages>>, kLanes> messages_;  // by lane and rank

  // Of rt-mpi.
  std::unique_ptr<MpiPort> port_;
  std::vector<std::unique_ptr<Lane>> lanes_;
  uint64_t next_id_ = 0;  // modulo lanes_.size() it is the lane's index

  Mutex mutex_;
  ConditionVariable changed_;
  bool begun_ RT_GUARDED_BY(mutex_) = false;
  Status begin_ RT_GUARDED_BY(mutex_);
  bool work_ RT_GUARDED_BY(mutex_) = false;
  bool sleeping_ RT_GUARDED_BY(mutex_) = false;
  std::optional<Ended> ended_ RT_GUARDED_BY(mutex_);
};

// ---- the beginning and the end ------------------------------------------------------------------

Status Engine::Begin() {
  std::string error;
  port_ = open_(&error);
  if (port_ == nullptr) return FailedPrecondition("MPI cannot be used: " + error);
  if (port_->rank() != world_.rank || port_->size() != world_.world_size) {
    return FailedPrecondition(fmt::format(
        "this is rank {} of {}, but rank {} of {} to MPI; start the job with mpirun or srun alone, "
        "without --rank, --world, RANK or WORLD_SIZE",
        world_.rank, world_.world_size, port_->rank(), port_->size()));
  }
  for (const auto& lane : lanes_) {
    const size_t capacity = kChunkBytes[lane->number] + kFramesOverhead;
    for (int i = 0; i < 2 * kChunksAhead; ++i) {
      lane->chunks.push_back(std::make_unique<Chunk>(capacity));
      if (i < kChunksAhead) {
        lane->free.push_back(lane->chunks.back().get());
      } else {
        RT_RETURN_IF_ERROR(StartReceive(lane.get(), lane->chunks.back().get()));
      }
    }
  }
  return {};
}

Status Engine::AwaitBegin() {
  const Deadline deadline = Clock::now() + world_.connect_timeout;
  MutexLock lock(&mutex_);
  while (!begun_ && StopSignal() == 0 && Clock::now() < deadline) {
    changed_.WaitUntil(&mutex_, NextLookForStop(deadline));
  }
  if (begun_) return begin_;
  RT_RETURN_IF_ERROR(
      CheckNotStopped().Annotate(fmt::format("rank {} waited for MPI to begin", world_.rank)));
  return Status(StatusCode::kDeadlineExceeded,
                fmt::format("MPI has not begun within {} ms: rank {} waits in MPI_Init for the "
                            "others; are all ranks started by one mpirun (or srun with a PMI)?",
                            world_.connect_timeout.count(), world_.rank));
}

void Engine::EndWith(const Status& cause, const OutgoingFrame& last) {
  if (!ending_->Set(cause)) return;
  if (observer_ != nullptr) observer_->OnEnd(cause);
  for (const auto& lane : lanes_) lane->messages->End(last);
  const bool in_peace = last.header.kind == FrameKind::kGoodbye;
  MutexLock lock(&mutex_);
  ended_ = Ended{.in_peace = in_peace,
                 .leave_at = Clock::now() + (in_peace ? world_.leave_timeout : kAbortLimit)};
  work_ = true;
  changed_.NotifyAll();
}

void Engine::OnPeerError(int peer, const Status& status) {
  const bool told = std::ranges::any_of(lanes_, [&](const auto& lane) {
    return lane->peer == peer && lane->messages->peer_state() == PeerMessages::PeerState::kStopped;
  });
  // What a peer has told us is passed on unchanged: the rank that it comes from is in it.
  End(status, told ? status : AbortSeenByPeer(world_.rank, status));
}

bool Engine::AllPeersHaveLeft() const {
  return std::ranges::all_of(lanes_, [](const auto& lane) {
    return lane->messages->peer_state() != PeerMessages::PeerState::kHere;
  });
}

// All that we had to say is said, and the peers have said the same, or will not: after the last
// Write.
bool Engine::MayStop(const Ended& ended) const {
  const bool written = std::ranges::all_of(lanes_, [](const auto& lane) {
    return lane->sending.empty() && !lane->free.empty();  // else there may be more to write
  });
  const auto now = Clock::now();
  return (written && (AllPeersHaveLeft() || now >= ended.leave_at)) ||
         now >= ended.leave_at + (ended.in_peace ? kWriteLimit : std::chrono::seconds(0));
}

// ---- chunks -------------------------------------------------------------------------------------

Status Engine::StartReceive(Lane* lane, Chunk* chunk) {
  const uint64_t id = next_id_++ * lanes_.size() + lane->index;
  lane->receiving.push_back({.id = id, .chunk = chunk});
  return FromMpi(port_->Receive(lane->peer, lane->number, chunk->bytes(), id));
}

Status Engine::Write(Lane* lane, bool* any) {
  while (!lane->sending.empty() && lane->sending.front().finished) {
    lane->free.push_back(lane->sending.front().chunk);
    lane->sending.pop_front();
  }
  while (!lane->free.empty()) {
    const std::vector<OutgoingFrame> frames = lane->messages->TakeFrames(kChunkBytes[lane->number]);
    if (frames.empty()) return {};
    *any = true;
    Chunk* const chunk = lane->free.back();
    lane->free.pop_back();
    chunk->SetUsed(0);
    for (const OutgoingFrame& frame : frames) {
      chunk->Append(EncodeHeader(frame.header));
      chunk->Append(std::as_bytes(std::span(frame.control_payload)));
      chunk->Append(frame.payload);
    }
    const uint64_t id = next_id_++ * lanes_.size() + lane->index;
    lane->sending.push_back({.id = id, .chunk = chunk});
    RT_RETURN_IF_ERROR(FromMpi(port_->Send(lane->peer, lane->number, chunk->used(), id)));
  }
  return {};
}

// Chunks that have come, in the order of their sender.
Status Engine::Read(Lane* lane, bool* any) {
  while (lane->receiving.front().finished) {
    *any = true;
    Chunk* const chunk = lane->receiving.front().chunk;
    lane->receiving.pop_front();
    const std::span<const std::byte> piece = chunk->used();
    ByteCursor cursor(std::span(&piece, 1));
    const Status status = lane->messages->OnFrames(&cursor);
    if (!status.ok()) OnPeerError(lane->peer, status);
    const bool left = lane->messages->peer_state() == PeerMessages::PeerState::kLeft;
    if (left && observer_ != nullptr && ending_->cause().ok()) observer_->OnPeerLeft(lane->peer);
    RT_RETURN_IF_ERROR(StartReceive(lane, chunk));
  }
  return {};
}

Status Engine::Poll(bool* any) {
  std::array<MpiPort::Finished, 32> finished;
  size_t count = 0;
  RT_RETURN_IF_ERROR(FromMpi(port_->Poll(finished, &count)));
  for (const MpiPort::Finished& one : std::span(finished).first(count)) {
    Lane& lane = *lanes_[one.id % lanes_.size()];
    for (auto* const pending : {&lane.receiving, &lane.sending}) {
      const auto found = std::ranges::find(*pending, one.id, &Lane::Pending::id);
      if (found == pending->end()) continue;
      found->finished = true;
      if (pending == &lane.receiving) found->chunk->SetUsed(one.bytes);
    }
  }
  *any |= count > 0;
  return {};
}

// ---- the thread ---------------------------------------------------------------------------------

void Engine::Run() {
  SetThreadName("rt-mpi");
  prctl(PR_SET_TIMERSLACK, 1000);  // ns: pauses of 10 us are none with the usual 50
  const Status begin = Begin();
  {
    MutexLock lock(&mutex_);
    begin_ = begin;
    begun_ = true;
    changed_.NotifyAll();
  }
  if (!begin.ok()) return;
  Work();
  // MPI waits for all ranks in its end; so it has none unless all are there.
  if (ended()->in_peace && AllPeersHaveLeft()) {
    (void)port_->Leave();  // nothing is left that an error could spoil
  }
}

void Engine::Work() {
  for (Clock::time_point last_move = Clock::now();;) {
    const std::optional<Ended> end = ended();
    bool any = false;
    Status status = Poll(&any);
    for (const auto& lane : lanes_) {
      if (status.ok()) status = Read(lane.get(), &any);
      if (status.ok()) status = Write(lane.get(), &any);
    }
    if (!status.ok()) {
      End(status, AbortSeenByPeer(world_.rank, status));
      return;  // MPI is of no use any more
    }
    if (end && MayStop(*end)) return;
    if (any) {
      last_move = Clock::now();
    } else {
      Pause(last_move);
    }
  }
}

void Engine::Pause(Clock::time_point last_move) {
  const auto now = Clock::now();
  const auto pause = std::clamp(std::chrono::duration_cast<microseconds>((now - last_move) / 8),
                                kShortestPause, kLongestPause);
  MutexLock lock(&mutex_);
  sleeping_ = true;
  while (!work_ && changed_.WaitUntil(&mutex_, now + pause)) {
  }
  sleeping_ = work_ = false;
}

// ---- the transport ------------------------------------------------------------------------------

class MpiTransport : public Transport {
 public:
  MpiTransport(const MpiWorld& world, MpiPortOpener open, TransportObserver* observer)
      : engine_(std::make_shared<Engine>(world, std::move(open), observer)) {}
  ~MpiTransport() override {
    engine_->Leave();
    if (thread_.joinable()) thread_.join();
  }

  Status Connect() {
    thread_ = std::thread([engine = engine_] { engine->Run(); });
    const Status begin = engine_->AwaitBegin();
    // It may be in MPI_Init for ever; what it uses is its own.
    if (!begin.ok()) thread_.detach();
    return begin;
  }

  int rank() const override { return engine_->world().rank; }
  int world_size() const override { return engine_->world().world_size; }

  void Abort(const Status& cause) override { engine_->End(cause, AbortSeenByPeer(rank(), cause)); }

 private:
  void StartSend(int peer, const MessageLabel& label, std::span<const std::byte> bytes,
                 CompletionTarget done) override {
    const Status status =
        engine_->messages(peer, label.tag)
            .Send(std::make_shared<SendOperation>(peer, label, bytes, done, engine_->ending()));
    if (!status.ok()) Abort(status);
    engine_->Wake();
  }

  void StartReceive(int peer, const MessageLabel& label, ReceiveBuffer buffer,
                    CompletionTarget done) override {
    const Status status =
        engine_->messages(peer, label.tag)
            .Receive({.peer = peer, .label = label, .buffer = buffer, .done = done});
    if (!status.ok()) Abort(status);
    engine_->Wake();
  }

  Traffic TrafficWith(int peer) const override { return engine_->traffic(peer); }

  const std::shared_ptr<Engine> engine_;
  std::thread thread_;
};

}  // namespace

StatusOr<std::unique_ptr<Transport>> ConnectMpi(const MpiWorld& world, MpiPortOpener open,
                                                TransportObserver* observer) {
  auto transport = std::make_unique<MpiTransport>(world, std::move(open), observer);
  RT_RETURN_IF_ERROR(transport->Connect());
  return std::unique_ptr<Transport>(std::move(transport));
}

}  // namespace ringtail
