// ServerPush: a gradient on its way from a virtual worker to the servers.
//
//   weights, statistics in the model's arena -> gradients of the ticket's images, batch by batch
//   -> what servers decode of them (PushCompression) -> a part for each server
//
// Thread-safety: the trainer thread. Memory: a block of the model's size until all servers have it.
#ifndef RINGTAIL_APPS_EMULATOR_RULES_SERVER_PUSH_H_
#define RINGTAIL_APPS_EMULATOR_RULES_SERVER_PUSH_H_

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "apps/emulator/emulated_job.h"
#include "apps/emulator/rules/push_compression.h"
#include "apps/parameter_server/weight_server.h"
#include "core/aligned_buffer.h"
#include "core/status.h"
#include "dist/parameter_server/tickets.h"
#include "layers/net/net.h"

namespace ringtail {

struct ServerPush {
  Ticket ticket;
  LossResult loss;
  std::vector<AlignedBuffer> gradients;  // by server: sums over the images
  std::vector<int64_t> bytes;            // by server: on the wire
  std::vector<int64_t> versions;         // by server: what it was computed with
  std::vector<float> statistics;
  bool finite = true;
  double norm = 0;  // of the mean gradient, before it is coded
  size_t delivered = 0, refused = 0;
  int64_t staleness = 0;  // at server 0
};

// What a worker computes with; its statistics change, and what its compression has not sent.
struct WorkerState {
  AlignedBuffer* weights = nullptr;
  AlignedBuffer* statistics = nullptr;
  PushCompression* compression = nullptr;  // null: none
};

// All but the versions. Errors: SharedNet's; DataLoss if a codec cannot
// read what it wrote.
StatusOr<std::shared_ptr<ServerPush>> ComputePush(EmulatedJob* job, const Ticket& ticket,
                                                  std::span<const WeightServer* const> servers,
                                                  const WorkerState& worker);

}  // namespace ringtail

#endif  // RINGTAIL_APPS_EMULATOR_RULES_SERVER_PUSH_H_
