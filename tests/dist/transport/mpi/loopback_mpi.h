// MPI among threads of this process, for tests of what Ringtail does with it: a port for each rank,
// as strict as the standard lets MPI be (a message needs its receive, and a send ends with it).
#ifndef RINGTAIL_TESTS_DIST_TRANSPORT_MPI_LOOPBACK_MPI_H_
#define RINGTAIL_TESTS_DIST_TRANSPORT_MPI_LOOPBACK_MPI_H_

#include <memory>
#include <vector>

#include "dist/transport/mpi/mpi_port.h"
#include "tests/dist/test_world.h"

namespace ringtail {

class LoopbackMpi {
 public:
  explicit LoopbackMpi(int ranks);
  ~LoopbackMpi();

  MpiPortOpener OpenerOf(int rank);
  // From now on every call of this rank's port fails with this sentence.
  void Break(int rank, const std::string& error);

  struct Hub;  // what the ports share

 private:
  std::shared_ptr<Hub> hub_;
};

World MakeLoopbackMpiWorld(int world_size);
// The same, but even ranks share memory, and odd ranks do.
World MakeTwoHostMpiWorld(int world_size);
World JoinLoopbackMpi(LoopbackMpi* mpi, int world_size);

}  // namespace ringtail

#endif  // RINGTAIL_TESTS_DIST_TRANSPORT_MPI_LOOPBACK_MPI_H_
