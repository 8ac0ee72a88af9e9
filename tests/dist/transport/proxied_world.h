// Two ranks whose wire goes through a proxy: rank 1 dials rank 0 through it.
#ifndef RINGTAIL_TESTS_DIST_TRANSPORT_PROXIED_WORLD_H_
#define RINGTAIL_TESTS_DIST_TRANSPORT_PROXIED_WORLD_H_

#include <array>
#include <memory>

#include "dist/transport/transport.h"
#include "dist/transport/transport_listener.h"
#include "tests/dist/transport/wire_proxy.h"

namespace ringtail {

struct ProxiedWorld {
  // The addresses of the ranks differ, as those of two machines do.
  explicit ProxiedWorld(const TransportOptions& options);

  std::unique_ptr<WireProxy> proxy;
  std::array<std::unique_ptr<Transport>, 2> ranks;
};

}  // namespace ringtail

#endif  // RINGTAIL_TESTS_DIST_TRANSPORT_PROXIED_WORLD_H_
