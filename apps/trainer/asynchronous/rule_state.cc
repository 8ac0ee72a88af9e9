#include "apps/trainer/asynchronous/rule_state.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <span>

namespace ringtail {
namespace {

std::string NameOf(const RuleState& state, const Parameter& p) {
  return "servers." + state.name + "." + p.spec.name;
}

StatusOr<RuleScalars> Share(TrainingWorld* world, const RuleScalars& own, int source) {
  const std::vector<int64_t> bits = {own.updates, std::bit_cast<int64_t>(own.usual_weight),
                                     std::bit_cast<int64_t>(own.learning_rate),
                                     std::bit_cast<int64_t>(own.mean_step)};
  RT_ASSIGN_OR_RETURN(const std::vector<int64_t> shared, world->ShareNumbers(bits, source));
  return RuleScalars{.updates = shared.at(0),
                     .usual_weight = std::bit_cast<double>(shared.at(1)),
                     .learning_rate = std::bit_cast<double>(shared.at(2)),
                     .mean_step = std::bit_cast<double>(shared.at(3))};
}

}  // namespace

StatusOr<RuleState> ShareRuleState(TrainingWorld* world, const ResumePoint& point,
                                   const AsynchronousRule& rule, const ParameterArena& model) {
  RuleState state{.name = RuleBlockName(rule)};
  RT_ASSIGN_OR_RETURN(state.scalars, Share(world, point.server_rule, point.source_rank));
  if (state.name.empty()) return state;
  state.block.resize(model.values().size());
  for (const Parameter& p : model.parameters()) {
    const std::string name = NameOf(state, p);
    if (!point.tensors || !point.tensors->Has(name)) continue;
    RT_ASSIGN_OR_RETURN(const std::span<const float> saved, point.tensors->F32(name, p.spec.shape));
    std::ranges::copy(saved, state.block.begin() + p.offset);
  }
  RT_RETURN_IF_ERROR(world->Run([&](Communicator* ranks) {
    return ranks->Broadcast(std::span<float>(state.block), point.source_rank);
  }));
  return state;
}

std::vector<TensorView> RuleTensors(const RuleState& state, const ParameterArena& model) {
  std::vector<TensorView> tensors;
  if (state.block.empty()) return tensors;
  const std::span<const float> block = state.block;
  for (const Parameter& p : model.parameters()) {
    tensors.push_back(ViewF32(NameOf(state, p), p.spec.shape, block.subspan(p.offset, p.elements)));
  }
  return tensors;
}

}  // namespace ringtail
