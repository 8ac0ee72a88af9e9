#include "dist/transport/shared_memory/shared_memory.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <utility>

#include "core/check.h"
#include "core/machine/thread_budget.h"

namespace ringtail {
namespace {

constexpr size_t kBellAt = 64;  // after the key
// Of a peer's ring, which may be of another version.
constexpr uint64_t kMinRingBytes = 1 << 17, kMaxRingBytes = 1 << 30;
constexpr uint64_t kMaxOffset = uint64_t{1} << 40;
// No thread sleeps longer without looking: should a peer forget to ring, it is only slow.
constexpr std::chrono::seconds kLongestSleep{1};

// By measurement with two and four ranks on two cores (README.md).
constexpr size_t kRingBytes = 1 << 20;
constexpr size_t kChunkBytes = 512 << 10;
// How often a thread that waits for completions looks, with enough cores for all ranks of the host,
// before it sleeps: about 20 us.
constexpr int kLooks = 50;
// How long the own thread believes that a caller's thread will be back (doorbell.h).
constexpr std::chrono::milliseconds kBackWithin{2};

// What TakeFrames may add to the data it was asked for: headers, control frames.
constexpr size_t kFramesOverhead = 20 << 10;

RingHeader* HeaderIn(const SharedMapping& ring) {
  return reinterpret_cast<RingHeader*>(ring.bytes().data());
}

std::string Where(int peer) { return fmt::format("shared memory with rank {}", peer); }

}  // namespace

StatusOr<std::shared_ptr<SharedMemory>> SharedMemory::Create(
    const std::map<int, PeerMessages*>& messages, OnError on_error) {
  const size_t slot = kSegmentAlignment + kRingBytes;
  RT_ASSIGN_OR_RETURN(SharedSegment segment,
                      SharedSegment::Create(kSegmentAlignment + messages.size() * slot));
  RT_ASSIGN_OR_RETURN(SharedMapping first_page, segment.Map(0, kSegmentAlignment));
  std::map<int, std::unique_ptr<Link>> links;
  for (const auto& [peer, of_peer] : messages) {
    auto link = std::make_unique<Link>();
    link->messages = of_peer;
    link->offset = kSegmentAlignment + links.size() * slot;
    RT_ASSIGN_OR_RETURN(link->our_slot, segment.Map(link->offset, slot));
    link->reader =
        RingReader(HeaderIn(link->our_slot), link->our_slot.bytes().subspan(kSegmentAlignment));
    links.emplace(peer, std::move(link));
  }
  const std::shared_ptr<SharedMemory> shared(
      new SharedMemory(std::move(segment), std::move(on_error)));
  shared->first_page_ = std::move(first_page);
  shared->bell_ = BellIn(shared->first_page_);
  shared->links_ = std::move(links);
  const int ranks = static_cast<int>(messages.size()) + 1;
  shared->looks_ = UsableCores() >= ranks ? kLooks : 0;
  shared->thread_ = std::thread([raw = shared.get()] { raw->Run(); });
  return shared;
}

SharedMemory::~SharedMemory() { RT_CHECK(!thread_.joinable(), "Stop comes first"); }

Doorbell* SharedMemory::BellIn(const SharedMapping& first_page) {
  return reinterpret_cast<Doorbell*>(first_page.bytes().data() + kBellAt);
}

// ---- agreeing with each peer --------------------------------------------------------------------

SharedMemoryOffer SharedMemory::OfferTo(int peer) const {
  MutexLock lock(&mutex_);
  RT_CHECK(segment_.has_value(), "offers come before CloseSegment");
  return {.segment = segment_->name(), .offset = links_.at(peer)->offset, .ring_bytes = kRingBytes};
}

StatusOr<PeerMemory> PeerMemory::Map(const SharedMemoryOffer& offer) {
  if (!std::has_single_bit(offer.ring_bytes) || offer.ring_bytes < kMinRingBytes ||
      offer.ring_bytes > kMaxRingBytes || offer.offset % kSegmentAlignment != 0 ||
      offer.offset < kSegmentAlignment || offer.offset > kMaxOffset) {
    return DataLoss(fmt::format("no ring has {} bytes at {}", offer.ring_bytes, offer.offset));
  }
  const uint64_t bytes = kSegmentAlignment + offer.ring_bytes;
  RT_ASSIGN_OR_RETURN(const SharedSegment segment,
                      SharedSegment::Open(offer.segment, offer.offset + bytes));
  PeerMemory memory;
  RT_ASSIGN_OR_RETURN(memory.first_page, segment.Map(0, kSegmentAlignment));
  RT_ASSIGN_OR_RETURN(memory.slot, segment.Map(offer.offset, bytes));
  return memory;
}

void SharedMemory::Start(int peer, PeerMemory memory) {
  Link& link = *links_.at(peer);
  if (link.starting.exchange(true)) return;  // a second stream that claims to be this peer
  link.peer_memory = std::move(memory);
  link.bell = BellIn(link.peer_memory.first_page);
  link.writer = RingWriter(HeaderIn(link.peer_memory.slot),
                           link.peer_memory.slot.bytes().subspan(kSegmentAlignment));
  link.messages->SkipChecksums();
  link.started = true;
  WakeAtBell(bell_, kOwnThread);  // the peer may have begun
}

void SharedMemory::CloseSegment() {
  MutexLock lock(&mutex_);
  segment_.reset();
}

bool SharedMemory::Carries(int peer) const {
  const auto link = links_.find(peer);
  return link != links_.end() && link->second->started;
}

// ---- from the peers -----------------------------------------------------------------------------

// The turn to read is held.
StatusOr<bool> SharedMemory::ReadAll(int peer, Link* link) {
  for (bool any = false;; any = true) {
    const StatusOr<size_t> unread = link->reader.Available();
    if (!unread.ok()) return unread.status().Annotate(Where(peer));
    const size_t available = *unread;
    if (available == 0) return any;
    // One frame, so that its room is free again as soon as it has been read. Its length is only
    // looked at here; what counts is the copy of the header that OnFrames checks.
    std::array<std::byte, kFrameHeaderBytes> header;
    RingReader::Pieces pieces = link->reader.Next(std::min(available, header.size()));
    ByteCursor head(pieces);
    const bool whole = head.Read(header);
    const size_t frame = kFrameHeaderBytes + (whole ? AnnouncedPayload(header) : 0);
    if (frame > available) return DataLoss(Where(peer) + ": half a frame");  // never published so
    pieces = link->reader.Next(frame);
    ByteCursor cursor(pieces);
    RT_RETURN_IF_ERROR(link->messages->OnFrames(&cursor));
    if (link->reader.Consume(frame)) RingBell(link->bell);
  }
}

bool SharedMemory::Pull(int peer, Link* link) {
  if (!link->started || link->broken || link->stopped || !link->reading.TryTake()) return false;
  const StatusOr<bool> any = ReadAll(peer, link);
  if (!any.ok()) link->broken = true;
  link->reading.GiveBack();
  if (!any.ok()) on_error_(peer, any.status());
  return !any.ok() || *any;
}

Status SharedMemory::OnPeerLeft(int peer) {
  Link& link = *links_.at(peer);
  link.reading.Take();
  Status status;
  if (!link.broken && !link.stopped) {
    const StatusOr<bool> any = ReadAll(peer, &link);
    if (!any.ok()) status = any.status();
  }
  link.reading.GiveBack();
  return status.ok() ? link.messages->OnPeerLeft() : status;
}

bool SharedMemory::Poll() {
  bool any = false;
  for (const auto& [peer, link] : links_) {
    const bool pulled = Pull(peer, link.get());
    if (pulled || link->waits_for_room) Pump(peer, link.get());
    any |= pulled;
  }
  return any;
}

// ---- to the peers -------------------------------------------------------------------------------

void SharedMemory::Pump(int peer) { Pump(peer, links_.at(peer).get()); }

// A thread that does not get the turn leaves the work to the one that has it, which looks at
// `wanted` afterwards.
void SharedMemory::Pump(int peer, Link* link) {
  if (!link->started) return;
  link->wanted = true;
  while (link->wanted && link->writing.TryTake()) {
    link->wanted = false;
    const Status status = WriteAll(link);
    link->writing.GiveBack();
    if (!status.ok()) {
      link->broken = true;
      return on_error_(peer, status.Annotate(Where(peer)));
    }
  }
}

// The turn to write is held.
Status SharedMemory::WriteAll(Link* link) {
  for (bool asked = false; !link->broken;) {
    RT_ASSIGN_OR_RETURN(const size_t room, link->writer.Room());
    if (room < 2 * kFramesOverhead) {
      link->waits_for_room = true;
      if (asked) return {};
      link->writer.AskForRoom();
      asked = true;
      continue;
    }
    asked = false;
    link->waits_for_room = false;
    std::vector<OutgoingFrame> frames =
        link->messages->TakeFrames(std::min(room - kFramesOverhead, kChunkBytes));
    if (frames.empty()) return {};
    for (const OutgoingFrame& frame : frames) {
      link->writer.Put(EncodeHeader(frame.header));
      link->writer.Put(std::as_bytes(std::span(frame.control_payload)));
      link->writer.Put(frame.payload);
    }
    link->writer.Publish();
    RingBell(link->bell);
  }
  return {};
}

// ---- threads ------------------------------------------------------------------------------------

void SharedMemory::Run() {
  SetThreadName("rt-shm");
  while (!stopped_) {
    const uint32_t moment = Moment();
    if (Poll()) continue;
    if ((bell_->state.load() & kBack) != 0) {
      WatchCaller();
    } else {
      SleepAtBell(bell_, kOwnThread, moment, std::chrono::steady_clock::now() + kLongestSleep);
    }
  }
}

// A caller's thread comes into Help again and again, and this one is not woken. Returns when it has
// not come for a while: from then on the bell wakes this thread again.
void SharedMemory::WatchCaller() {
  for (bool here = true; here && !stopped_;) {
    uint32_t visits = 0;
    {
      MutexLock lock(&mutex_);
      visits = visits_;
    }
    SleepAtBell(bell_, kOwnThread, Moment(), std::chrono::steady_clock::now() + kBackWithin);
    MutexLock lock(&mutex_);
    here = helping_ || visits_ != visits;
  }
  bell_->state.fetch_and(~uint32_t{kBack});
}

bool SharedMemory::Help(uint32_t moment, Deadline deadline) {
  bool alone = true;
  {
    MutexLock lock(&mutex_);
    if (helping_) several_ = true;
    if (helping_ || stopped_) return false;
    helping_ = true;
    ++visits_;
    alone = !several_;
  }
  if (alone && (bell_->state.load() & kBack) == 0) {
    bell_->state.fetch_or(kBack);
    WakeAtBell(bell_, kOwnThread);  // so that it watches
  }
  bool any = Poll();
  for (int i = 0; !any && i < looks_ && Moment() == moment; ++i) std::this_thread::yield();
  if (!any) {
    SleepAtBell(bell_, kCaller, moment,
                std::min(deadline, std::chrono::steady_clock::now() + kLongestSleep));
    Poll();  // as doorbell.h asks
  }
  MutexLock lock(&mutex_);
  helping_ = false;
  helper_left_.NotifyAll();
  if (several_) {  // this one may be back soon, but another may be waiting now
    bell_->state.fetch_and(~uint32_t{kBack});
    WakeAtBell(bell_, kOwnThread);
  }
  return true;
}

void SharedMemory::StopFrames(int peer) {
  Link& link = *links_.at(peer);
  Pull(peer, &link);
  if (!link.stopped.exchange(true)) link.writing.Take();  // and never gives it back
}

void SharedMemory::StopFrames() {
  for (const auto& [peer, link] : links_) StopFrames(peer);
}

void SharedMemory::Stop() {
  stopped_ = true;
  WakeAtBell(bell_, kOwnThread);
  WakeAtBell(bell_, kCaller);
  thread_.join();
  MutexLock lock(&mutex_);
  while (helping_) helper_left_.Wait(&mutex_);
}

}  // namespace ringtail
