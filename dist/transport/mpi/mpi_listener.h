// The transport over MPI (mpi_transport.h) as a listener. MPI needs no address: mpirun has told it
// where the ranks are.
#ifndef RINGTAIL_DIST_TRANSPORT_MPI_MPI_LISTENER_H_
#define RINGTAIL_DIST_TRANSPORT_MPI_MPI_LISTENER_H_

#include <chrono>
#include <memory>

#include "dist/transport/mpi/mpi_port.h"
#include "dist/transport/mpi/mpi_transport.h"
#include "dist/transport/transport_listener.h"

namespace ringtail {

// Connect fails with FailedPrecondition if MPI cannot be used. leave_timeout: of MpiWorld.
std::unique_ptr<TransportListener> ListenMpi(
    const TransportOptions& options, MpiPortOpener open,
    std::chrono::milliseconds leave_timeout = MpiWorld().leave_timeout);

}  // namespace ringtail

#endif  // RINGTAIL_DIST_TRANSPORT_MPI_MPI_LISTENER_H_
