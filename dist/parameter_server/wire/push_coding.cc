#include "dist/parameter_server/wire/push_coding.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "core/round.h"
#include "dist/compression/scheme_choice.h"

namespace ringtail {
namespace {

constexpr int64_t kAlignBytes = 8;

}  // namespace

StatusOr<std::vector<CompressedLayer>> PushLayers(const CompressionConfig& config,
                                                  std::span<const Parameter> model,
                                                  double samples) {
  std::vector<CompressedLayer> layers;
  for (LayerScheme& scheme : ChooseSchemes(config, model, samples)) {
    if (scheme.sketch != nullptr || scheme.memory == MemoryKind::kMomentum) {
      return InvalidArgument(fmt::format(
          "dist.compression: {} is for gradients that all ranks exchange, and not for pushes to "
          "servers; take a scheme such as linear8, two_bit or top_k",
          scheme.name));
    }
    if (scheme.every_steps > 1) {
      return InvalidArgument(
          "dist.compression: every push has the gradients of all layers; leave every_steps out "
          "with dist.asynchronous");
    }
    layers.push_back({.scheme = std::move(scheme)});
  }
  return layers;
}

PushCoding::PushCoding(std::span<const CompressedLayer> layers, std::span<const Parameter> model,
                       const std::vector<Place>& places, uint64_t seed) {
  for (const Place& place : places) {
    const Parameter& parameter = model[place.parameter];
    Piece piece{.codec = layers[place.parameter].scheme.codec.get(), .place = place};
    piece.context = AfterWarmUp(GradientShapeOf(parameter.spec));
    piece.context.seed = seed;
    piece.context.parameter = static_cast<uint32_t>(place.parameter);
    piece.elements = static_cast<size_t>(parameter.elements);
    piece.begin = bytes_;
    piece.bytes = piece.codec != nullptr
                      ? static_cast<size_t>(piece.codec->PayloadBytes(piece.context))
                      : piece.elements * sizeof(float);
    bytes_ += RoundUp(piece.bytes, kAlignBytes);
    pieces_.push_back(piece);
  }
}

EncodeContext PushCoding::ContextOf(const Piece& piece, int worker, int64_t push) {
  EncodeContext context = piece.context;
  context.rank = static_cast<uint32_t>(worker);
  context.step = static_cast<uint64_t>(push);
  return context;
}

void PushCoding::Encode(int worker, int64_t push, std::span<const float> model,
                        const LayerMemories& memories, std::span<std::byte> payload) const {
  for (const Piece& piece : pieces_) {
    const auto gradient = model.subspan(piece.place.model_offset, piece.elements);
    const std::span<std::byte> out = payload.subspan(piece.begin, piece.bytes);
    if (piece.codec == nullptr) {
      std::memcpy(out.data(), gradient.data(), out.size());
    } else {
      memories.of_codec(piece.place.parameter)
          ->Encode(*piece.codec, ContextOf(piece, worker, push), gradient, 0, out);
    }
  }
}

Status PushCoding::Decode(int worker, int64_t push, std::span<const std::byte> payload,
                          std::span<float> own) const {
  if (payload.size() != bytes_) return DataLoss("a coded gradient of another length");
  for (const Piece& piece : pieces_) {
    const std::span<float> gradient = own.subspan(piece.place.own_offset, piece.elements);
    const auto in = payload.subspan(piece.begin, piece.bytes);
    if (piece.codec == nullptr) {
      std::memcpy(gradient.data(), in.data(), in.size());
      continue;
    }
    std::ranges::fill(gradient, 0.0F);
    RT_RETURN_IF_ERROR(piece.codec->DecodeAdd(ContextOf(piece, worker, push), in, 1, gradient));
  }
  return OkStatus();
}

}  // namespace ringtail
