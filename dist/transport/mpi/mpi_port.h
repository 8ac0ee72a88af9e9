// MpiPort: what MpiTransport needs of MPI, so that the program neither includes nor links it.
//
//   ringtail_dist                              libringtail_mpi.so (module/mpi_module.cc)
//   MpiTransport --> MpiPort <----------------- implements it, includes <mpi.h>
//   OpenMpiPort (mpi_library.h): dlopen ------> RingtailOpenMpiPort
//
// Messages between two ranks on one lane arrive in the order in which they were sent, and meet
// receives in the order in which these were started. Nothing here waits.
//
// Only types that both sides of a dlopen share by construction cross this interface: the module is
// built with the program, by the same compiler, and kMpiPortVersion says so.
// Errors: a sentence; empty if there is none. After one the port is only good for destruction.
// Thread-safety: none; the thread that opened a port is the only one that uses and destroys it
// (MPI_THREAD_FUNNELED).
#ifndef RINGTAIL_DIST_TRANSPORT_MPI_MPI_PORT_H_
#define RINGTAIL_DIST_TRANSPORT_MPI_MPI_PORT_H_

#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <string>

namespace ringtail {

inline constexpr int kMpiPortVersion = 2;

class MpiPort {
 public:
  struct Finished {
    void* context = nullptr;  // as given with the operation
    size_t bytes = 0;         // received
  };

  virtual ~MpiPort() = default;

  virtual int rank() const = 0;
  virtual int size() const = 0;

  // Starts an operation with `peer`, whose memory belongs to MPI until Poll returns its context.
  // A received message may be shorter than its memory, never longer. lane: 0 or 1.
  virtual std::string Send(int peer, int lane, std::span<const std::byte> bytes, void* context) = 0;
  virtual std::string Receive(int peer, int lane, std::span<std::byte> bytes, void* context) = 0;

  // Operations that have finished since the last call, at most finished.size(): `count` of them.
  virtual std::string Poll(std::span<Finished> finished, size_t* count) = 0;

  // All ranks have said goodbye: pending receives are cancelled, and MPI is left in order, which
  // waits for all ranks to do the same. Without this call the process ends as one that has failed.
  virtual std::string Leave() = 0;
};

// How a port is opened; called on the thread that will use it. Null with `error` set if it cannot
// be.
using MpiPortOpener = std::function<std::unique_ptr<MpiPort>(std::string* error)>;

// The one symbol of the module. `version`: kMpiPortVersion of the program.
using RingtailOpenMpiPortFunction = MpiPort* (*)(int version, std::string* error);
inline constexpr char kRingtailOpenMpiPort[] = "RingtailOpenMpiPort";

}  // namespace ringtail

#endif  // RINGTAIL_DIST_TRANSPORT_MPI_MPI_PORT_H_
