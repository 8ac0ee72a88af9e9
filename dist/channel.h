// Channels: each counts its collectives (MessageTag::collective) separately on one transport, so
// that threads of a rank that use it at the same time do not depend on which comes first.
//
//   0          of the only communicator of a transport
//   1 .. 31    reserved, below: one user each in the life of a transport
//   32 ..      handed out by ChannelAllocator
//
// All ranks must use the same channel for the same purpose. A ChannelAllocator hands out
// consecutive numbers, so ranks that ask in the same order get the same ones. What only some ranks
// take part in (a group) must not change that order: ask on every rank, members or not, as
// Communicator::CreateForGroups does. Thread-safety: a ChannelAllocator belongs to one thread; a
// Channel is a value.
#ifndef RINGTAIL_DIST_CHANNEL_H_
#define RINGTAIL_DIST_CHANNEL_H_

#include <cstdint>

#include "core/check.h"
#include "dist/transport/transport.h"

namespace ringtail {

class Channel {
 public:
  constexpr Channel() = default;
  explicit constexpr Channel(uint64_t number) : number_(number) {}

  constexpr uint64_t number() const { return number_; }
  // The first MessageTag::collective of this channel; the next is one more.
  constexpr uint64_t FirstCollective() const { return number_ << kChannelShift; }

 private:
  uint64_t number_ = 0;
};

inline constexpr Channel kProbeChannel{2};   // dist/probe.h
inline constexpr Channel kTraceChannel{14};  // dist/trace/waiting_messages.h

// One for each transport.
class ChannelAllocator {
 public:
  Channel Next() {
    RT_CHECK(next_ < kChannels, "a transport has 65,536 channels, and all are taken");
    return Channel(next_++);
  }

 private:
  static constexpr uint64_t kFirst = 32, kChannels = uint64_t{1} << (64 - kChannelShift);
  uint64_t next_ = kFirst;
};

}  // namespace ringtail

#endif  // RINGTAIL_DIST_CHANNEL_H_
