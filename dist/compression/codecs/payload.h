// What the payloads of several codecs share.
//
// Numbers are little-endian, as on every machine that Ringtail runs on. A scale (a mean, a norm, a
// threshold that a block of elements shares) is one of
//
//   0             the block is zero, or below 2^-100 (8e-31), where its inverse would overflow
//   2^-100 ..     up to the largest float
//   7fc00000      "not a number": an element was NaN or infinite, or a sum overflowed. The whole
//                 block decodes to NaN, so that every rank notices in the same step.
//
// Thread-safety: functions without state.
#ifndef RINGTAIL_DIST_COMPRESSION_CODECS_PAYLOAD_H_
#define RINGTAIL_DIST_COMPRESSION_CODECS_PAYLOAD_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "core/random.h"
#include "core/status.h"
#include "dist/compression/codecs/codec.h"

namespace ringtail {

constexpr int64_t BytesOfBits(int64_t bits) { return (bits + 7) / 8; }
constexpr int64_t BlocksOf(int64_t elements, int64_t block) {
  return (elements + block - 1) / block;
}

// Encode's arguments come from our own code: ends the process if sizes do not match.
void CheckEncode(const Codec& codec, const EncodeContext& context, std::span<const float> gradient,
                 std::span<const std::byte> payload);
// The payload comes from another rank: a wrong length is DataLoss.
Status CheckDecode(const Codec& codec, const EncodeContext& context,
                   std::span<const std::byte> payload, std::span<const float> sum);
// DataLoss: "payload of '<codec>': <what>".
Status BadPayload(const Codec& codec, std::string_view what);

float ToScale(double value);  // value: >= 0, infinite or NaN
bool IsScale(float value);    // whether ToScale can have returned it
bool IsNumber(float scale);   // not "not a number"
// The n-th float of a payload, which need not be aligned.
void StoreFloat(float value, std::span<std::byte> payload, int64_t n);
float LoadFloat(std::span<const std::byte> payload, int64_t n);

std::span<uint8_t> BytesAt(std::span<std::byte> payload, int64_t begin, int64_t bytes);
std::span<const uint8_t> BytesAt(std::span<const std::byte> payload, int64_t begin, int64_t bytes);
// Whether the bits of a plane after its first `bits` are zero.
bool EndsClear(std::span<const uint8_t> plane, int64_t bits);

// Adds NaN: for a block whose scale is not a number.
void AddNotANumber(std::span<float> sum);

// The key of the random choices that a rank makes for itself.
RngKey DrawKey(const EncodeContext& context);

}  // namespace ringtail

#endif  // RINGTAIL_DIST_COMPRESSION_CODECS_PAYLOAD_H_
