#include "apps/trainer/local/outer_state.h"

#include <algorithm>
#include <span>
#include <string>

namespace ringtail {
namespace {

std::string NameOf(const Optimizer::StateBlock& block, const Parameter& p) {
  return "local.outer." + block.name + "." + p.spec.name;
}

}  // namespace

std::vector<TensorView> OuterTensors(LocalRound* round) {
  std::vector<TensorView> tensors;
  for (const Optimizer::StateBlock& block : round->state()) {
    for (const Parameter& p : round->differences()->parameters()) {
      tensors.push_back(
          ViewF32(NameOf(block, p), p.spec.shape, block.values.subspan(p.offset, p.elements)));
    }
  }
  return tensors;
}

Status RestoreOuterState(TrainingWorld* world, const ResumePoint& point, LocalRound* round) {
  for (const Optimizer::StateBlock& block : round->state()) {
    for (const Parameter& p : round->differences()->parameters()) {
      const std::string name = NameOf(block, p);
      if (point.empty() || !point.tensors->Has(name)) continue;
      RT_ASSIGN_OR_RETURN(const std::span<const float> saved,
                          point.tensors->F32(name, p.spec.shape));
      std::ranges::copy(saved, block.values.begin() + p.offset);
    }
    RT_RETURN_IF_ERROR(world->Run(
        [&](Communicator* ranks) { return ranks->Broadcast(block.values, point.source_rank); }));
  }
  return OkStatus();
}

}  // namespace ringtail
