#include "tests/dist/transport/proxied_world.h"

#include <fmt/format.h>

#include <string>
#include <utility>

#include "dist/transport/grpc/grpc_listener.h"
#include "tests/dist/test_world.h"

namespace ringtail {

ProxiedWorld::ProxiedWorld(const TransportOptions& options) {
  std::array<std::unique_ptr<TransportListener>, 2> listeners;
  for (const int rank : {0, 1}) {
    listeners[rank] = std::move(*ListenGrpc(fmt::format("127.0.0.{}:0", rank + 1), options));
  }
  proxy = std::make_unique<WireProxy>("127.0.0.3", listeners[0]->address());
  const std::string one = listeners[1]->address();
  const std::array<std::string, 2> zero{listeners[0]->address(), proxy->address()};
  OnEveryRank(2, [&](int rank) {
    ranks[rank] =
        std::move(*listeners[rank]->Connect({.rank = rank, .addresses = {zero[rank], one}}));
  });
}

}  // namespace ringtail
