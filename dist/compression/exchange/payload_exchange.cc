#include "dist/compression/exchange/payload_exchange.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/stopwatch.h"
#include "dist/collectives/plan.h"

namespace ringtail {
namespace {

constexpr int64_t kAlignment = 4;

int64_t Aligned(int64_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

// Elements [offset, offset + shape.elements()) of a gradient, treated as a gradient of their own.
struct Part {
  GradientShape shape;
  int64_t offset = 0;
  int index = 0;
};

Part WholeOf(const CodedGradient& g) { return {.shape = g.context.shape}; }

Part PartOf(const CodedGradient& g, int world, int index) {
  const ElementRange range = EvenPart(g.context.shape.elements(), world, index);
  return {.shape = {.columns = range.count}, .offset = range.offset, .index = index};
}

EncodeContext ContextOf(const CodedGradient& g, const Part& part, int encoder) {
  EncodeContext context = g.context.WithShape(part.shape);
  context.part = static_cast<uint32_t>(part.index);
  context.rank = static_cast<uint32_t>(encoder);
  return context;
}

EncodeContext ContextOfSum(const CodedGradient& g, const Part& part, int encoder, int world) {
  EncodeContext context = ContextOf(g, part, encoder);
  context.summands = world;
  return context;
}

std::span<float> Slice(const CodedGradient& g, const Part& part) {
  return g.gradient.subspan(part.offset, part.shape.elements());
}

// Encodes one part of this rank's gradient to the start of `bytes`.
void EncodePart(const CodedGradient& g, const Part& part, int encoder, std::span<std::byte> bytes) {
  const EncodeContext context = ContextOf(g, part, encoder);
  g.memory->Encode(*g.codec, context, Slice(g, part), part.offset,
                   bytes.first(g.codec->PayloadBytes(context)));
}

// Encodes the sum that this rank has made of its own part.
void EncodeSum(const CodedGradient& g, const Part& part, const EncodeContext& context,
               std::span<std::byte> bytes) {
  g.sum_memory->Encode(*g.codec, context, Slice(g, part), 0,
                       bytes.first(g.codec->PayloadBytes(context)));
}

// Replaces one part of the gradient by the sum that its owner has encoded.
Status DecodeSumOf(const CodedGradient& g, const Part& part, const EncodeContext& context,
                   std::span<const std::byte> bytes) {
  const std::span<float> sum = Slice(g, part);
  std::ranges::fill(sum, 0.0F);
  return g.codec->DecodeAdd(context, bytes.first(g.codec->PayloadBytes(context)), 1, sum)
      .Annotate(fmt::format("the sum of the gradient of {}", g.name));
}

// Replaces one part of the gradient by the sum of what all ranks have encoded of it. `payloads` is
// scratch memory.
Status AddUp(const CodedGradient& g, const Part& part, int world,
             const std::function<std::span<const std::byte>(int rank)>& bytes_of,
             std::vector<std::span<const std::byte>>* payloads) {
  const EncodeContext context = g.context.WithShape(part.shape);
  payloads->clear();
  for (int rank = 0; rank < world; ++rank) {
    payloads->push_back(bytes_of(rank).first(g.codec->PayloadBytes(context)));
  }
  const std::span<float> sum = Slice(g, part);
  std::ranges::fill(sum, 0.0F);
  return g.codec->DecodeSum(context, *payloads, sum)
      .Annotate(fmt::format("the gradient of {}", g.name));
}

// Where the payload of each gradient starts in a block; returns the bytes of a block.
int64_t LayOut(std::span<const CodedGradient> gradients,
               const std::function<int64_t(const CodedGradient&)>& bytes,
               std::vector<int64_t>* offsets) {
  offsets->clear();
  int64_t end = 0;
  for (const CodedGradient& g : gradients) {
    offsets->push_back(end);
    end += Aligned(bytes(g));
  }
  return end;
}

}  // namespace

int64_t GatheredBytes(const Codec& codec, const EncodeContext& context, int world) {
  return (world - 1) * Aligned(codec.PayloadBytes(context));
}

// Parts have two sizes, that of the first and that of the last. The smaller one may need more bytes:
// low_bits of sparse entries depends on the elements, and each of their parts ends with a whole byte.
PartBytes PartBytesOf(const Codec& codec, const EncodeContext& context, int world) {
  PartBytes bytes;
  for (const int rank : {0, world - 1}) {
    const int64_t elements = EvenPart(context.shape.elements(), world, rank).count;
    if (elements == 0) continue;
    EncodeContext part = context.WithShape({.columns = elements});
    bytes.gradient = std::max(bytes.gradient, Aligned(codec.PayloadBytes(part)));
    part.summands = world;
    bytes.sum = std::max(bytes.sum, Aligned(codec.PayloadBytes(part)));
  }
  return bytes;
}

int64_t ShardedBytes(const Codec& codec, const EncodeContext& context, int world) {
  const PartBytes bytes = PartBytesOf(codec, context, world);
  return (world - 1) * (bytes.gradient + bytes.sum);
}

// Only grows: nothing is allocated after the first step.
std::span<std::byte> PayloadExchange::Buffer(size_t bytes) {
  const size_t words = (bytes + sizeof(uint32_t) - 1) / sizeof(uint32_t);
  if (buffer_.size() < words) buffer_.resize(words);
  return std::as_writable_bytes(std::span(buffer_)).first(bytes);
}

Status PayloadExchange::Gather(Communicator* ranks, std::span<const CodedGradient> gradients) {
  const int world = ranks->world_size(), own = ranks->rank();
  const int64_t block = LayOut(
      gradients, [](const CodedGradient& g) { return g.codec->PayloadBytes(g.context); },
      &offsets_);
  const std::span<std::byte> all = Buffer(world * block);
  {
    const ScopedStopwatch watch(&times_.encode_seconds);
    for (size_t i = 0; i < gradients.size(); ++i) {
      EncodePart(gradients[i], WholeOf(gradients[i]), own, all.subspan(own * block + offsets_[i]));
    }
  }
  RT_RETURN_IF_ERROR(ranks->AllGather(all));
  const ScopedStopwatch watch(&times_.decode_seconds);
  for (size_t i = 0; i < gradients.size(); ++i) {
    RT_RETURN_IF_ERROR(AddUp(
        gradients[i], WholeOf(gradients[i]), world,
        [&](int rank) { return all.subspan(rank * block + offsets_[i]); }, &payloads_));
  }
  return OkStatus();
}

Status PayloadExchange::Sharded(Communicator* ranks, std::span<const CodedGradient> gradients) {
  const int64_t world = ranks->world_size();
  const auto bytes_of = [&](const CodedGradient& g) {
    return PartBytesOf(*g.codec, g.context, ranks->world_size());
  };
  const int64_t block = LayOut(
      gradients, [&](const CodedGradient& g) { return bytes_of(g).gradient; }, &offsets_);
  const int64_t sum_block = LayOut(
      gradients, [&](const CodedGradient& g) { return bytes_of(g).sum; }, &sum_offsets_);
  const std::span<std::byte> all = Buffer(world * (2 * block + sum_block));
  const std::span<std::byte> both = all.first(2 * world * block);
  const ShardedBlocks blocks = {
      .sent = {.all = both.first(world * block), .bytes = block, .offsets = &offsets_},
      .got = {.all = both.last(world * block), .bytes = block, .offsets = &offsets_},
      .sums = {.all = all.last(world * sum_block), .bytes = sum_block, .offsets = &sum_offsets_},
      .world = ranks->world_size(),
      .own = ranks->rank()};
  EncodeParts(gradients, blocks);
  RT_RETURN_IF_ERROR(ranks->AllToAll(both));
  RT_RETURN_IF_ERROR(AddUpOwnParts(gradients, blocks));
  RT_RETURN_IF_ERROR(ranks->AllGather(blocks.sums.all));
  return DecodeSums(gradients, blocks);
}

void PayloadExchange::EncodeParts(std::span<const CodedGradient> gradients,
                                  const ShardedBlocks& blocks) {
  const ScopedStopwatch watch(&times_.encode_seconds);
  for (size_t i = 0; i < gradients.size(); ++i) {
    for (int part = 0; part < blocks.world; ++part) {
      EncodePart(gradients[i], PartOf(gradients[i], blocks.world, part), blocks.own,
                 blocks.sent.Of(part, i));
    }
  }
  // This rank's own part does not travel.
  std::ranges::copy(blocks.sent.Of(blocks.own), blocks.got.Of(blocks.own).begin());
}

Status PayloadExchange::AddUpOwnParts(std::span<const CodedGradient> gradients,
                                      const ShardedBlocks& blocks) {
  for (size_t i = 0; i < gradients.size(); ++i) {
    const CodedGradient& g = gradients[i];
    const Part part = PartOf(g, blocks.world, blocks.own);
    {
      const ScopedStopwatch watch(&times_.decode_seconds);
      RT_RETURN_IF_ERROR(AddUp(
          g, part, blocks.world, [&](int rank) { return blocks.got.Of(rank, i); }, &payloads_));
    }
    const ScopedStopwatch watch(&times_.encode_seconds);
    EncodeSum(g, part, ContextOfSum(g, part, blocks.SecondTime(blocks.own), blocks.world),
              blocks.sums.Of(blocks.own, i));
  }
  return OkStatus();
}

Status PayloadExchange::DecodeSums(std::span<const CodedGradient> gradients,
                                   const ShardedBlocks& blocks) {
  const ScopedStopwatch watch(&times_.decode_seconds);
  for (size_t i = 0; i < gradients.size(); ++i) {
    const CodedGradient& g = gradients[i];
    for (int rank = 0; rank < blocks.world; ++rank) {
      const Part part = PartOf(g, blocks.world, rank);
      RT_RETURN_IF_ERROR(DecodeSumOf(g, part,
                                     ContextOfSum(g, part, blocks.SecondTime(rank), blocks.world),
                                     blocks.sums.Of(rank, i))
                             .Annotate(fmt::format("rank {}", rank)));
    }
  }
  return OkStatus();
}

}  // namespace ringtail
