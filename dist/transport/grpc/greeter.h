// Greeter: how streams between ranks begin. The rank that dials says hello, the rank that is
// dialled checks it and answers with its own; both know their peer before a message is read.
//
//   rank 3 (dials)                               rank 1
//     hello: rank 3 to rank 1 of 4, proof  ───>    CheckNewcomer
//     CheckAnswer  <───────────────────────────    hello: rank 1 to rank 3 of 4, proof
//
// Thread-safety: immutable.
#ifndef RINGTAIL_DIST_TRANSPORT_GRPC_GREETER_H_
#define RINGTAIL_DIST_TRANSPORT_GRPC_GREETER_H_

#include "core/status.h"
#include "dist/transport/frames/byte_cursor.h"
#include "dist/transport/frames/control_payload.h"
#include "dist/transport/frames/outbox.h"
#include "dist/transport/transport_listener.h"

namespace ringtail {

class Greeter {
 public:
  // `peers` must outlive the greeter.
  explicit Greeter(const PeerTable* peers) : peers_(*peers) {}

  // urgent: of the pair's second stream.
  OutgoingFrame HelloTo(int peer, bool urgent) const;

  // The hello with which a stream begins: DataLoss if it is none, FailedPrecondition if it is of
  // another world, PermissionDenied without the world's secret.
  StatusOr<Hello> Read(ByteCursor* bytes) const;

  // OK if `hello` is the answer of `peer`, which this rank has dialled; otherwise what answers
  // there.
  Status CheckAnswer(const StatusOr<Hello>& hello, int peer, bool urgent) const;
  // OK if `hello` is of a rank that dials this one.
  Status CheckNewcomer(const Hello& hello) const;

 private:
  const PeerTable& peers_;
};

}  // namespace ringtail

#endif  // RINGTAIL_DIST_TRANSPORT_GRPC_GREETER_H_
