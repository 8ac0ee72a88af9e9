#include "apps/emulator/rules/push_compression.h"

#include <algorithm>
#include <utility>

namespace ringtail {
namespace {

// A virtual worker's gradient stays where it is: servers gather theirs from it.
std::vector<PushCoding::Place> PlacesOf(std::span<const size_t> server,
                                        std::span<const Parameter> model) {
  std::vector<PushCoding::Place> places;
  places.reserve(server.size());
  for (const size_t i : server) {
    places.push_back(
        {.parameter = i, .model_offset = model[i].offset, .own_offset = model[i].offset});
  }
  return places;
}

}  // namespace

StatusOr<std::unique_ptr<PushCompression>> PushCompression::Create(
    EmulatedJob* job, int worker, std::span<const std::span<const size_t>> servers) {
  const RunConfig& config = job->config();
  RT_ASSIGN_OR_RETURN(std::vector<CompressedLayer> layers,
                      PushLayers(config.dist().compression(), job->arena()->parameters(),
                                 static_cast<double>(config.train().batch())));
  return std::unique_ptr<PushCompression>(
      new PushCompression(job, worker, std::move(layers), servers));
}

PushCompression::PushCompression(EmulatedJob* job, int worker, std::vector<CompressedLayer> layers,
                                 std::span<const std::span<const size_t>> servers)
    : job_(job),
      worker_(worker),
      layers_(std::move(layers)),
      memories_(job->arena(), layers_, LayerMemoryOptions{.rank = worker}) {
  const std::span<const Parameter> model = job->arena()->parameters();
  size_t most = 0;
  for (const std::span<const size_t> server : servers) {
    codings_.emplace_back(layers_, model, PlacesOf(server, model), job->config().train().seed());
    most = std::max(most, codings_.back().bytes());
  }
  payload_.resize(most);
}

Status PushCompression::Code() {
  const std::span<float> gradients = job_->arena()->grads();
  for (const PushCoding& coding : codings_) {
    const std::span<std::byte> payload = std::span(payload_).first(coding.bytes());
    std::ranges::fill(payload, std::byte{0});
    coding.Encode(worker_, pushes_, gradients, memories_, payload);
    RT_RETURN_IF_ERROR(coding.Decode(worker_, pushes_, payload, gradients));
  }
  ++pushes_;
  return OkStatus();
}

}  // namespace ringtail
