#include "dist/transport/mpi/mpi_engine.h"

#include <fmt/format.h>
#include <sys/prctl.h>

#include <algorithm>
#include <span>
#include <string>
#include <utility>

#include "core/machine/thread_budget.h"
#include "core/stop_signal.h"
#include "dist/transport/frames/control_payload.h"
#include "dist/transport/operation.h"

namespace ringtail {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::microseconds;

constexpr microseconds kShortestPause{10}, kLongestPause{1000};
// For the peers to answer an abort, so that it has got through; and for what is said to be sent.
constexpr std::chrono::seconds kAbortLimit{2}, kWriteLimit{10};

}  // namespace

MpiEngine::MpiEngine(const PeerTable& peers, const MpiLimits& limits, MpiPortOpener open,
                     TransportObserver* observer)
    : peers_(peers), limits_(limits), open_(std::move(open)), observer_(observer) {
  for (int lane = 0; lane < kMpiLanes; ++lane) {
    for (int peer = 0; peer < peers_.world_size(); ++peer) {
      messages_[lane].push_back(peer == peers_.rank ? nullptr : MakeMessages(peer, lane));
      if (peer == peers_.rank) continue;
      lanes_.push_back(std::make_unique<MpiLane>(peer, lane, messages_[lane][peer].get()));
    }
  }
}

std::unique_ptr<PeerMessages> MpiEngine::MakeMessages(int peer, int lane) const {
  auto messages = std::make_unique<PeerMessages>(peer, peers_.generation, ending_);
  if (peers_.OnOneHost(peer)) {
    messages->SkipChecksums();
  } else if (lane != kUrgentMpiLane) {
    messages->LendForNetwork();
  }
  return messages;
}

// ---- the beginning and the end ------------------------------------------------------------------

Status MpiEngine::Begin() {
  std::string error;
  port_ = open_(&error);
  if (port_ == nullptr) return FailedPrecondition("MPI cannot be used: " + error);
  if (port_->rank() != peers_.rank || port_->size() != peers_.world_size()) {
    return FailedPrecondition(fmt::format(
        "this is rank {} of {}, but rank {} of {} to MPI; start the job with mpirun or srun alone, "
        "without --rank, --world, RANK or WORLD_SIZE",
        peers_.rank, peers_.world_size(), port_->rank(), port_->size()));
  }
  for (const auto& lane : lanes_) RT_RETURN_IF_ERROR(lane->Start(port_.get()));
  return {};
}

Status MpiEngine::AwaitBegin() {
  const Deadline deadline = Clock::now() + limits_.connect;
  MutexLock lock(&mutex_);
  while (!begin_ && StopSignal() == 0 && Clock::now() < deadline) {
    changed_.WaitUntil(&mutex_, NextLookForStop(deadline));
  }
  if (begin_) return *begin_;
  RT_RETURN_IF_ERROR(
      CheckNotStopped().Annotate(fmt::format("rank {} waited for MPI to begin", peers_.rank)));
  return Status(StatusCode::kDeadlineExceeded,
                fmt::format("MPI has not begun within {} ms: rank {} waits in MPI_Init for the "
                            "others; are all ranks started by one mpirun (or srun with a PMI)?",
                            limits_.connect.count(), peers_.rank));
}

void MpiEngine::End(const Status& cause, const Status& seen_by_peers) {
  EndWith(cause, ControlFrame(FrameKind::kAbort, peers_.generation, AbortPayload(seen_by_peers)));
}

void MpiEngine::Leave() {
  EndWith({StatusCode::kUnavailable, fmt::format("rank {} has left the world", peers_.rank)},
          ControlFrame(FrameKind::kGoodbye, peers_.generation));
}

void MpiEngine::EndWith(const Status& cause, const OutgoingFrame& last) {
  if (!ending_->Set(cause)) return;
  if (observer_ != nullptr) observer_->OnEnd(cause);
  for (const auto& lane : lanes_) lane->messages->End(last);
  const bool in_peace = last.header.kind == FrameKind::kGoodbye;
  MutexLock lock(&mutex_);
  ended_ = Ended{.in_peace = in_peace,
                 .leave_at = Clock::now() + (in_peace ? limits_.leave : kAbortLimit)};
  work_ = true;
  changed_.NotifyAll();
}

std::optional<MpiEngine::Ended> MpiEngine::ended() {
  MutexLock lock(&mutex_);
  return ended_;
}

void MpiEngine::OnPeerError(int peer, const Status& status) {
  const bool told = std::ranges::any_of(messages_, [peer](const auto& of_lane) {
    return of_lane[peer]->peer_state() == PeerMessages::PeerState::kStopped;
  });
  // What a peer has told us is passed on unchanged: the rank that it comes from is in it.
  End(status, told ? status : AbortSeenByPeer(peers_.rank, status));
}

bool MpiEngine::AllPeersHaveLeft() const {
  return std::ranges::all_of(lanes_, [](const auto& lane) {
    return lane->messages->peer_state() != PeerMessages::PeerState::kHere;
  });
}

// All that we had to say is said, and the peers have said the same, or will not: after the last Write.
bool MpiEngine::MayStop(const Ended& ended) const {
  const bool written =
      std::ranges::all_of(lanes_, [](const auto& lane) { return lane->AllWritten(); });
  const auto now = Clock::now();
  return (written && (AllPeersHaveLeft() || now >= ended.leave_at)) ||
         now >= ended.leave_at + (ended.in_peace ? kWriteLimit : std::chrono::seconds(0));
}

// ---- the thread ---------------------------------------------------------------------------------

void MpiEngine::Run() {
  SetThreadName("rt-mpi");
  prctl(PR_SET_TIMERSLACK, 1000);  // ns: pauses of 10 us are none with the usual 50
  const Status begin = Begin();
  {
    MutexLock lock(&mutex_);
    begin_ = begin;
    changed_.NotifyAll();
  }
  if (!begin.ok()) return;
  Work();
  // MPI waits for all ranks in its end; so it has none unless all are there.
  if (ended()->in_peace && AllPeersHaveLeft()) {
    (void)port_->Leave();  // nothing is left that an error could spoil
  }
}

void MpiEngine::Work() {
  for (Clock::time_point last_move = Clock::now();;) {
    const std::optional<Ended> end = ended();
    bool any = false;
    Status status = Poll(&any);
    for (const auto& lane : lanes_) {
      if (status.ok()) status = Read(lane.get(), &any);
      if (status.ok()) status = lane->Write(&any);
    }
    if (!status.ok()) {
      End(status, AbortSeenByPeer(peers_.rank, status));
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

Status MpiEngine::Poll(bool* any) {
  std::array<MpiPort::Finished, 32> finished;
  size_t count = 0;
  const std::string error = port_->Poll(finished, &count);
  if (!error.empty()) return {StatusCode::kUnavailable, error};
  for (const MpiPort::Finished& one : std::span(finished).first(count)) {
    static_cast<MpiChunk*>(one.context)->Finish(one.bytes);
  }
  *any |= count > 0;
  return {};
}

Status MpiEngine::Read(MpiLane* lane, bool* any) {
  while (MpiChunk* const chunk = lane->TakeArrived()) {
    *any = true;
    const std::span<const std::byte> piece = chunk->used();
    ByteCursor cursor(std::span(&piece, 1));
    const Status status = lane->messages->OnFrames(&cursor);
    if (!status.ok()) OnPeerError(lane->peer, status);
    const bool left = lane->messages->peer_state() == PeerMessages::PeerState::kLeft;
    if (left && observer_ != nullptr && ending_->cause().ok()) observer_->OnPeerLeft(lane->peer);
    RT_RETURN_IF_ERROR(lane->Receive(chunk));
  }
  return {};
}

void MpiEngine::Wake() {
  MutexLock lock(&mutex_);
  work_ = true;
  if (sleeping_) changed_.NotifyAll();
}

void MpiEngine::Pause(Deadline last_move) {
  const auto now = Clock::now();
  const auto pause = std::clamp(std::chrono::duration_cast<microseconds>((now - last_move) / 8),
                                kShortestPause, kLongestPause);
  MutexLock lock(&mutex_);
  sleeping_ = true;
  while (!work_ && changed_.WaitUntil(&mutex_, now + pause)) {
  }
  sleeping_ = work_ = false;
}

}  // namespace ringtail
