// ServerMessage: what workers and servers tell each other. A header of 68 bytes, then the bytes that
// it announces, then running statistics if it says so: three messages of the transport under one
// collective, with step 0, 1 and 2.
//
//   worker -> server                              server -> worker, under the same number
//   kPull      version: the key it has, + 1       kWeights   weights of a version (pull_coding.h)
//   kPush      a gradient, sums over images;      kJudged    applied, added up or refused
//              of no rows: none, it only passes
//   kAsk       for a ticket (first shard)         kTicket, perhaps of no rows (ticket_desk.h);
//   kReturn    a ticket that was refused (first)    kRoundOver to the worker that keeps the run; kEnd
//   kSnapshot  of all, once it has these pushes   kState     weights, optimizer state, average
//   kAway      it does not compute for a while
//   kLeave     nothing follows
//
//   server -> replica: each of these requests, with its worker; and        replica -> server
//   kLost      this worker is lost                                         kHave   up to this one
//   kLeave     of worker -1: the server has ended
//
//   byte 0     4     5      6       7           8     16      24    32   36      40       48   56    64
//   "RTPS" version kind  flags  reason/signal clock version first rows correct loss_sum norm bytes worker
//
//   field     kPush               kJudged           kWeights, kState   kAsk     kTicket  kRoundOver, kEnd
//   clock     its pushes before   staleness         clock              .        .        .
//   version   computed with       of the shard      these              .        .        .
//   first     row                 images applied    images applied     .        row      kEnd: step
//   rows      images              .                 .                  .        rows     who has stopped it
//   reason    .                   RefusalReason     .                  signal   .        signal
//   norm      of the gradient     .                 .                  .        .        kEnd: best accuracy
//
// Requests of a worker are numbered from 0 for each server; a server takes them in this order.
// Whatever comes from outside is checked: DecodeMessage the bytes, ShardService what they mean.
// Thread-safety: functions without state. Errors: DataLoss that says which field is wrong.
#ifndef RINGTAIL_DIST_PARAMETER_SERVER_WIRE_MESSAGES_H_
#define RINGTAIL_DIST_PARAMETER_SERVER_WIRE_MESSAGES_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "core/status.h"

namespace ringtail {

inline constexpr size_t kServerMessageBytes = 68;

enum class MessageKind : uint8_t {
  kPull = 1,
  kPush,
  kAsk,
  kReturn,
  kSnapshot,
  kAway,
  kLeave,
  kLost,
  kWeights = 16,
  kJudged,
  kTicket,
  kRoundOver,
  kEnd,
  kState,
  kHave,
};
// Whether a request is answered.
inline bool IsAnswered(MessageKind kind) {
  return kind == MessageKind::kPull || kind == MessageKind::kPush || kind == MessageKind::kAsk ||
         kind == MessageKind::kSnapshot;
}

struct ServerMessage {
  MessageKind kind = MessageKind::kPull;
  bool finite = true;       // kPush: loss and gradient; kReturn: false gives the rows back
  bool applied = false;     // kJudged: it was taken
  bool statistics = false;  // running statistics follow
  uint8_t reason = 0;       // RefusalReason, or the signal by which a worker is told to stop
  int64_t clock = 0, version = 0, first = 0;
  int32_t rows = 0, correct = 0;
  double loss_sum = 0, norm = 0;  // of the worker's images; norm: of the mean gradient
  uint64_t bytes = 0;             // of what follows, without the statistics
  int32_t worker = 0;             // of a request that a server has had, to its replica; else 0
  bool operator==(const ServerMessage&) const = default;
};

using EncodedMessage = std::array<std::byte, kServerMessageBytes>;
EncodedMessage EncodeMessage(const ServerMessage& message);
StatusOr<ServerMessage> DecodeMessage(std::span<const std::byte, kServerMessageBytes> bytes);

}  // namespace ringtail

#endif  // RINGTAIL_DIST_PARAMETER_SERVER_WIRE_MESSAGES_H_
