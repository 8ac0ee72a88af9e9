#include "apps/emulator/rules/push_compression.h"

#include <utility>

#include "apps/emulator/clock/coded_layers.h"
#include "dist/parameter_server/rule_choice.h"
#include "dist/transport/in_process.h"

namespace ringtail {
namespace {

constexpr int64_t kFloatBytes = sizeof(float);

int64_t PayloadBytes(const LayerScheme& scheme, const Parameter& parameter, double epoch) {
  if (scheme.codec != nullptr) {
    return scheme.codec->PayloadBytes({.shape = GradientShapeOf(parameter.spec), .epoch = epoch});
  }
  const int64_t floats =
      scheme.sketch != nullptr ? scheme.sketch->TotalFloats() : parameter.elements;
  return floats * kFloatBytes;
}

// Between a worker and a server: no payload of others is gathered or added up in parts.
std::vector<CompressedLayer> LayersOf(EmulatedJob* job, const CodedKind& kind) {
  const VirtualNetwork& network = *job->network();
  CodedLayers layers = ChooseCodedLayers(kind, job->arena()->parameters(), job->compute(),
                                         network.TopologyOf({0, 1}), network.model());
  for (LayerRoute& route : layers.routes) {
    if (route == LayerRoute::kSharded) route = LayerRoute::kGathered;
  }
  return std::move(layers).Take();
}

}  // namespace

StatusOr<std::unique_ptr<PushCompression>> PushCompression::Create(EmulatedJob* job, int worker) {
  std::unique_ptr<PushCompression> made(new PushCompression(job, worker));
  RT_ASSIGN_OR_RETURN(
      made->communicator_,
      Communicator::Create(made->world_[0].get(), job->network()->TopologyOf({worker}),
                           {.network = job->network()->model()}));
  return made;
}

PushCompression::PushCompression(EmulatedJob* job, int worker)
    : job_(job),
      dense_epochs_(job->config().dist().compression().dense_epochs()),
      world_(MakeInProcessWorld(1)) {
  const CodedKind kind{.config = job->config().dist().compression(),
                       .samples = static_cast<double>(job->config().train().batch())};
  CompressedReducer::Options options =
      ReducerOptions(kind.config, /*rank=*/worker, /*world=*/1, kind.samples);
  options.seed = job->config().train().seed();
  options.guard_every_steps = 0;
  reducer_ = std::make_unique<CompressedReducer>(job->arena(), job->sizes().buckets,
                                                 LayersOf(job, kind), options);
}

Status PushCompression::Code(double epoch) {
  const std::span<float> gradients = job_->arena()->grads();
  const Grouping grouping = RuleOf(job_->config().dist().asynchronous()).grouping;
  epoch_ = epoch;
  reducer_->BeginStep(pushes_++, epoch, grouping.gradients_per_push);
  const std::vector<GradientBucket>& buckets = job_->sizes().buckets;
  for (size_t b = 0; b < buckets.size(); ++b) {
    const ElementRange& range = buckets[b].range;
    RT_RETURN_IF_ERROR(reducer_->Reduce(
        communicator_.get(), b,
        gradients.subspan(static_cast<size_t>(range.offset), static_cast<size_t>(range.count))));
  }
  reducer_->EndStep();
  return OkStatus();
}

int64_t PushCompression::BytesOf(std::span<const size_t> parameters) const {
  const bool dense = epoch_ < dense_epochs_;
  int64_t bytes = 0;
  for (const size_t i : parameters) {
    const Parameter& parameter = job_->arena()->parameters()[i];
    bytes += dense ? parameter.elements * kFloatBytes
                   : PayloadBytes(reducer_->layers()[i].scheme, parameter, epoch_ - dense_epochs_);
  }
  return bytes;
}

}  // namespace ringtail
