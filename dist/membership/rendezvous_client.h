// A rank's end of the conversation with the rendezvous.
// Thread-safety: functions without state.
#ifndef RINGTAIL_DIST_MEMBERSHIP_RENDEZVOUS_CLIENT_H_
#define RINGTAIL_DIST_MEMBERSHIP_RENDEZVOUS_CLIENT_H_

#include <functional>
#include <string>

#include "core/status.h"
#include "dist/membership/identity/rank_facts.h"
#include "dist/transport/door/socket_address.h"
#include "dist/transport/transport_listener.h"

namespace ringtail {

struct RendezvousRequest {
  SocketAddress rendezvous;  // something listens there
  std::string address;       // the same with port, for gRPC and for people
  TransportOptions wire;
  std::string token;
  RankFacts facts;
  // Opens a data listener at an address of this host; returns it with its port.
  std::function<StatusOr<std::string>(const std::string& address)> listen;
  Deadline deadline;  // for being taken in
};

struct RendezvousAnswer {
  WorldTable world;  // if `status` is OK
  Status status;
  bool final =
      true;  // else it may go better the next time, because the rendezvous has said nothing
};

// One attempt. Once this rank has been taken in, the rendezvous says how long it waits for others.
RendezvousAnswer AskRendezvous(const RendezvousRequest& request);

}  // namespace ringtail

#endif  // RINGTAIL_DIST_MEMBERSHIP_RENDEZVOUS_CLIENT_H_
