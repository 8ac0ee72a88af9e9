#include "dist/parameter_server/rule_memory.h"

#include <array>
#include <bit>

#include "core/check.h"

namespace ringtail {
namespace {

constexpr int kPieceBits = 16;
constexpr uint64_t kPiece = (1U << kPieceBits) - 1;
constexpr size_t kPieces = 64 / kPieceBits;
constexpr int kFields = 4;
static_assert(kFields * kPieces == kScalarFloats);

}  // namespace

std::string RuleBlockName(const AsynchronousRule& rule) {
  switch (rule.compensation.form) {
    case Compensation::Form::kAdaptive:
      return "mean_squares";
    case Compensation::Form::kDana:
      return "velocities";
    case Compensation::Form::kNone:
    case Compensation::Form::kConstant:
      break;
  }
  return "";
}

void EncodeScalars(const RuleScalars& scalars, std::span<float> out) {
  RT_CHECK(out.size() == kScalarFloats, "room for every field");
  const std::array<uint64_t, kFields> fields = {
      static_cast<uint64_t>(scalars.updates), std::bit_cast<uint64_t>(scalars.usual_weight),
      std::bit_cast<uint64_t>(scalars.learning_rate), std::bit_cast<uint64_t>(scalars.mean_step)};
  for (size_t i = 0; i < out.size(); ++i) {
    const uint64_t piece = fields[i / kPieces] >> (kPieceBits * (i % kPieces)) & kPiece;
    out[i] = static_cast<float>(piece);
  }
}

RuleScalars DecodeScalars(std::span<const float> encoded) {
  RT_CHECK(encoded.size() == kScalarFloats, "every field");
  std::array<uint64_t, kFields> fields{};
  for (size_t i = 0; i < encoded.size(); ++i) {
    fields[i / kPieces] |= (static_cast<uint64_t>(encoded[i]) & kPiece)
                           << (kPieceBits * (i % kPieces));
  }
  return {.updates = static_cast<int64_t>(fields[0]),
          .usual_weight = std::bit_cast<double>(fields[1]),
          .learning_rate = std::bit_cast<double>(fields[2]),
          .mean_step = std::bit_cast<double>(fields[3])};
}

RuleScalars MeanOf(std::span<const RuleScalars> shards) {
  RT_CHECK(!shards.empty(), "a run has a server");
  RuleScalars mean = shards.front();  // exactly, if there is one
  for (size_t i = 1; i < shards.size(); ++i) {
    const double share = 1 / static_cast<double>(i + 1);
    mean.updates += (shards[i].updates - mean.updates) / static_cast<int64_t>(i + 1);
    mean.usual_weight += (shards[i].usual_weight - mean.usual_weight) * share;
    mean.learning_rate += (shards[i].learning_rate - mean.learning_rate) * share;
    mean.mean_step += (shards[i].mean_step - mean.mean_step) * share;
  }
  return mean;
}

}  // namespace ringtail
