#include "apps/trainer/sharding/whole_state.h"

#include <algorithm>
#include <utility>

#include "apps/trainer/checkpoint/model_file.h"
#include "core/parameter.h"
#include "layers/linear/linear_shard.h"

namespace ringtail {
namespace {

// Elements of one row.
int64_t RowOf(const ParameterSpec& spec) { return NumElements(spec.shape) / spec.shape[0]; }

// Where the rows of a rank begin in the whole tensor, and how many elements they are.
struct Range {
  int64_t offset = 0, count = 0;
};
Range RangeOf(const ParameterSpec& spec, int rank, int ranks) {
  const LinearShard shard{.rank = rank, .ranks = ranks};
  const int64_t row = RowOf(spec), outputs = spec.shard.whole;
  return {.offset = shard.first(outputs) * row, .count = shard.count(outputs) * row};
}

// From one rank to another; the others take part without data.
Status Send(TrainingWorld* world, int from, int to, std::span<float> array, int64_t count) {
  std::vector<float> nothing;
  if (array.empty()) {
    nothing.resize(count);
    array = nothing;
  }
  return world->Run([&](Communicator* ranks) { return ranks->Copy(array, from, to); });
}

// `whole`: on the source rank.
Status ScatterTensor(TrainingWorld* world, int source_rank, std::span<const float> whole,
                     const ShardedTensor& tensor) {
  for (int rank = 0; rank < world->size(); ++rank) {
    const Range range = RangeOf(*tensor.spec, rank, world->size());
    const bool takes = world->rank() == rank;
    std::vector<float> rows;
    if (world->rank() == source_rank) {
      const std::span<const float> part = whole.subspan(range.offset, range.count);
      rows.assign(part.begin(), part.end());
      if (takes) std::ranges::copy(rows, tensor.values.begin());
    }
    const std::span<float> array = rows.empty() && takes ? tensor.values : std::span(rows);
    RT_RETURN_IF_ERROR(Send(world, source_rank, rank, array, range.count));
  }
  return OkStatus();
}

// All ranks: that of the first that has one.
Status ErrorOfAll(TrainingWorld* world, const Status& own) {
  RT_ASSIGN_OR_RETURN(const auto found, world->FirstError(own));
  return found ? DataLoss(found->message) : OkStatus();
}

}  // namespace

StatusOr<WholeTensors> WholeTensors::Gather(TrainingWorld* world, const TrainingState& state) {
  WholeTensors whole;
  for (const ShardedTensor& tensor : state.Sharded()) {
    const ParameterSpec& spec = *tensor.spec;
    const Shape shape = spec.WholeShape();
    std::vector<float> rows(world->leads() ? NumElements(shape) : 0);
    for (int rank = 0; rank < world->size(); ++rank) {
      const Range range = RangeOf(spec, rank, world->size());
      std::span<float> array;
      if (world->leads()) array = std::span(rows).subspan(range.offset, range.count);
      if (world->rank() == rank && world->leads()) std::ranges::copy(tensor.values, array.begin());
      if (world->rank() == rank && !world->leads()) array = tensor.values;
      RT_RETURN_IF_ERROR(Send(world, rank, 0, array, range.count));
    }
    if (!world->leads()) continue;
    whole.rows_[tensor.name] = std::move(rows);
    whole.shapes_[tensor.name] = shape;
  }
  return whole;
}

void WholeTensors::Complete(std::vector<TensorView>* tensors) const {
  for (TensorView& view : *tensors) {
    const auto found = rows_.find(view.name);
    if (found != rows_.end()) view = ViewF32(view.name, shapes_.at(view.name), found->second);
  }
  tensors->insert(tensors->end(), others_.views.begin(), others_.views.end());
}

Status ScatterRows(TrainingWorld* world, int source_rank, const FindWhole& whole,
                   TrainingState* state) {
  const bool is_source = world->rank() == source_rank;
  const std::vector<ShardedTensor> tensors = state->Sharded();
  if (tensors.empty()) return OkStatus();
  std::vector<std::span<const float>> found(tensors.size());
  std::vector<int64_t> sent(tensors.size());
  for (size_t i = 0; i < tensors.size() && is_source && whole; ++i) {
    RT_ASSIGN_OR_RETURN(found[i], whole(tensors[i].name, tensors[i].spec->WholeShape()));
    sent[i] = found[i].empty() ? 0 : 1;
  }
  RT_ASSIGN_OR_RETURN(sent, world->ShareNumbers(std::move(sent), source_rank));
  for (size_t i = 0; i < tensors.size(); ++i) {
    if (sent[i] != 0) RT_RETURN_IF_ERROR(ScatterTensor(world, source_rank, found[i], tensors[i]));
  }
  return OkStatus();
}

Status CheckWeightsTogether(TrainingWorld* world, const TrainingState& state) {
  const Model& model = *state.model();
  Status own = CheckFiniteWeights(model.arena());
  const bool divided = !model.arena().sharded().empty() || model.whole() != nullptr;
  return divided ? ErrorOfAll(world, own) : own;
}

Status CheckStateTogether(TrainingWorld* world, const TrainingState& state) {
  return ErrorOfAll(world, state.CheckFinite());
}

}  // namespace ringtail
