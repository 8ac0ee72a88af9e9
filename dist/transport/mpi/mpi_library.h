// The module that knows MPI, loaded when a job asks for it: the program runs where there is no MPI.
#ifndef RINGTAIL_DIST_TRANSPORT_MPI_MPI_LIBRARY_H_
#define RINGTAIL_DIST_TRANSPORT_MPI_MPI_LIBRARY_H_

#include <memory>
#include <string>

#include "dist/transport/mpi/mpi_port.h"

namespace ringtail {

// Loads libringtail_mpi.so from ../lib/ringtail beside the program's folder (where builds and
// installations put it) and begins with MPI on the calling thread. An MpiPortOpener. The library is
// never unloaded: MPI leaves threads and handlers behind.
std::unique_ptr<MpiPort> OpenMpiPort(std::string* error);

}  // namespace ringtail

#endif  // RINGTAIL_DIST_TRANSPORT_MPI_MPI_LIBRARY_H_
