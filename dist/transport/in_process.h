// A world whose ranks are threads of this process: for tests, and to see what a transport must do
// with nothing else in the way.
//
// Nothing is ever buffered: a Send completes when its Receive has the bytes, copied once from
// memory to memory by whichever of the two came second. That is the strictest reading of the
// contract (transport.h): what does not block here blocks nowhere.
//
// Cost: one lock of the world per call, and one copy. The transports may outlive each other.
#ifndef RINGTAIL_DIST_TRANSPORT_IN_PROCESS_H_
#define RINGTAIL_DIST_TRANSPORT_IN_PROCESS_H_

#include <memory>
#include <vector>

#include "dist/transport/transport.h"

namespace ringtail {

// One transport for each rank of the world, by rank.
std::vector<std::unique_ptr<Transport>> MakeInProcessWorld(int world_size);

}  // namespace ringtail

#endif  // RINGTAIL_DIST_TRANSPORT_IN_PROCESS_H_
