#include "apps/emulator/rules/server_push.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/add_to.h"
#include "optim/gradient_norm.h"

namespace ringtail {
namespace {

// Of the ticket's images, in the arena's gradients.
StatusOr<LossResult> ComputeSum(EmulatedJob* job, const Ticket& ticket) {
  const std::span<float> gradients = job->arena()->grads();
  const int64_t images_per_step = job->plan().growth_run().images_per_batch;
  const int64_t step = ticket.first / images_per_step, batch = job->config().train().batch();
  LossResult loss;
  AlignedBuffer sum;
  for (int64_t done = 0; done < ticket.rows; done += batch) {
    const ElementRange rows{.offset = ticket.first + done - step * images_per_step,
                            .count = std::min(batch, ticket.rows - done)};
    RT_ASSIGN_OR_RETURN(const LossResult part, job->net()->Compute(step, rows, nullptr));
    loss += part;
    if (done > 0) AddTo(sum.floats(), gradients);
    if (done + batch >= ticket.rows) break;
    sum = AlignedBuffer(gradients.size_bytes());
    std::ranges::copy(gradients, sum.floats().begin());
  }
  return loss;
}

}  // namespace

StatusOr<std::shared_ptr<ServerPush>> ComputePush(EmulatedJob* job, const Ticket& ticket,
                                                  std::span<const WeightServer* const> servers,
                                                  const WorkerState& worker) {
  ParameterArena* const model = job->arena();
  auto push = std::make_shared<ServerPush>();
  push->ticket = ticket;
  model->SwapValues(worker.weights, worker.statistics);
  RT_ASSIGN_OR_RETURN(push->loss, ComputeSum(job, ticket));
  const double mean = 1.0 / static_cast<double>(std::max<int64_t>(push->loss.count, 1));
  push->norm = GradientNorm(*model, mean);
  push->finite = std::isfinite(push->loss.loss_sum) && std::isfinite(push->norm);
  // (What is not finite would stay in the residual.)
  if (worker.compression != nullptr && push->finite) {
    RT_RETURN_IF_ERROR(worker.compression->Code());
  }
  push->statistics.assign(model->buffer_values().begin(), model->buffer_values().end());
  for (size_t i = 0; i < servers.size(); ++i) {
    const WeightServer* const server = servers[i];
    AlignedBuffer part(static_cast<size_t>(server->elements()) * sizeof(float));
    server->Gather(model->grads(), part.floats());
    push->gradients.push_back(std::move(part));
    push->bytes.push_back(worker.compression != nullptr ? worker.compression->BytesTo(i)
                                                        : server->bytes());
  }
  model->SwapValues(worker.weights, worker.statistics);
  return push;
}

}  // namespace ringtail
