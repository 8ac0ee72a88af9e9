#include "apps/trainer/asynchronous/shard_placement.h"

#include <algorithm>
#include <cstdint>

#include "dist/parameter_server/shard_map.h"

namespace ringtail {

namespace {

std::shared_ptr<const PushCoding> CodingOf(const PlacedShard& shard, const ParameterArena& model,
                                           std::span<const CompressedLayer> layers, uint64_t seed) {
  if (layers.empty()) return nullptr;
  std::vector<PushCoding::Place> places;
  for (size_t i = 0; i < shard.parameters.size(); ++i) {
    const size_t parameter = shard.parameters[i];
    places.push_back({.parameter = parameter,
                      .model_offset = model.parameters()[parameter].offset,
                      .own_offset = shard.layout.own_offset(i)});
  }
  return std::make_shared<PushCoding>(layers, model.parameters(), places, seed);
}

}  // namespace

std::vector<PlacedShard> PlaceShards(const RunConfig& config, const ParameterArena& model,
                                     std::span<const CompressedLayer> layers,
                                     TrainingWorld* world) {
  std::vector<int64_t> bytes;
  for (const Parameter& parameter : model.parameters()) {
    bytes.push_back(parameter.elements * static_cast<int64_t>(sizeof(float)));
  }
  const int servers = config.dist().asynchronous().servers();
  const int asked = servers > 0 ? servers : world->size();
  const ShardMap map =
      DivideIntoShards(bytes, std::min({asked, world->size(), static_cast<int>(bytes.size())}));
  std::vector<PlacedShard> shards;
  for (size_t i = 0; i < map.parameters.size(); ++i) {
    const Channel requests = world->NextChannel(), replies = world->NextChannel();
    shards.push_back({.rank = static_cast<int>(i),
                      .parameters = map.parameters[i],
                      .layout = ShardLayout(model.parameters(), map.parameters[i]),
                      .requests = requests,
                      .replies = replies});
    if (i > 0 && config.dist().asynchronous().replicas() > 0) {
      const Channel forwards = world->NextChannel(), acknowledgements = world->NextChannel();
      const Channel asked = world->NextChannel(), answered = world->NextChannel();
      shards.back().replica = {.rank = static_cast<int>(i + 1) % world->size(),
                               .forwards = forwards,
                               .acknowledgements = acknowledgements,
                               .requests = asked,
                               .replies = answered};
    }
    shards.back().coding = CodingOf(shards.back(), model, layers, config.train().seed());
  }
  return shards;
}

}  // namespace ringtail
