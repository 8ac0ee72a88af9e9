// Payload exchange: adds up gradients that travel as a codec's payloads, which cannot be added up
// on the way. All ranks end with the same bits.
//
// Gathered: every rank gets the payloads of all ranks and decodes all of them. For S bytes of
// payload each rank receives (N - 1) S, so that it pays only in small worlds:
//
//      rank 0   [p0]---\             /-->[p0][p1][p2]---> p0 + p1 + p2
//      rank 1   [p1]----+-allgather-+--->[p0][p1][p2]---> p0 + p1 + p2
//      rank 2   [p2]---/             \-->[p0][p1][p2]---> p0 + p1 + p2
//
// Sharded: every rank adds up one part of the gradient for all, and encodes the sum again; each
// receives 2 (N - 1) / N S. For codecs that take any part of a gradient (Codec::divisible). The
// part's owner remembers what the second encoding leaves out. (As "compressed allreduce" in 1-bit
// Adam, Tang et al. 2021.)
//
//     rank 0   [p00][p01][p02]                 p00 + p10 + p20 --> [s0]                [s0][s1][s2]
//     rank 1   [p10][p11][p12]--all-to-all-->  p01 + p11 + p21 --> [s1]--allgather-->  [s0][s1][s2]
//     rank 2   [p20][p21][p22]                 p02 + p12 + p22 --> [s2]                [s0][s1][s2]
//
// Several layers share one exchange. Errors: those of the communicator; DataLoss, naming layer and
// rank, for a payload that cannot be decoded.
// Thread-safety: one thread at a time. Memory: what the ranks send each other in one exchange.
#ifndef RINGTAIL_DIST_COMPRESSION_EXCHANGE_PAYLOAD_EXCHANGE_H_
#define RINGTAIL_DIST_COMPRESSION_EXCHANGE_PAYLOAD_EXCHANGE_H_

#include <functional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "dist/communicator.h"
#include "dist/compression/codecs/codec.h"
#include "dist/compression/memory/gradient_memory.h"

namespace ringtail {

// A layer whose gradient is exchanged.
struct CodedGradient {
  std::string_view name;
  const Codec* codec = nullptr;
  EncodeContext context;              // of the whole gradient, on this rank
  CodecMemory* memory = nullptr;      // of this rank's gradients
  CodecMemory* sum_memory = nullptr;  // sharded: of the part that this rank adds up
  std::span<float> gradient;          // this rank's before, the sum over all ranks afterwards
};

// Time spent in encoding and decoding.
struct CodingTimes {
  double encode_seconds = 0, decode_seconds = 0;
};

class PayloadExchange {
 public:
  Status Gather(Communicator* ranks, std::span<const CodedGradient> gradients);
  Status Sharded(Communicator* ranks, std::span<const CodedGradient> gradients);

  // Since the last call.
  CodingTimes TakeTimes() { return std::exchange(times_, {}); }

 private:
  // A block per rank, which holds the payloads of all layers.
  struct Blocks {
    std::span<std::byte> all;
    int64_t bytes = 0;              // per block
    std::vector<int64_t>* offsets;  // of layers in a block

    std::span<std::byte> Of(int rank) const { return all.subspan(rank * bytes, bytes); }
    std::span<std::byte> Of(int rank, size_t layer) const {
      return Of(rank).subspan((*offsets)[layer]);
    }
  };
  // Both sides of the all-to-all, and the encoded sums.
  struct ShardedBlocks {
    Blocks sent, got, sums;
    int world = 1, own = 0;

    // EncodeContext::rank of the second encoding: its draws differ from those for the gradient.
    int SecondTime(int rank) const { return world + rank; }
  };

  std::span<std::byte> Buffer(size_t bytes);
  void EncodeParts(std::span<const CodedGradient> gradients, const ShardedBlocks& blocks);
  Status AddUpOwnParts(std::span<const CodedGradient> gradients, const ShardedBlocks& blocks);
  Status DecodeSums(std::span<const CodedGradient> gradients, const ShardedBlocks& blocks);

  std::vector<uint32_t> buffer_;  // payloads start at a multiple of 4 bytes
  std::vector<int64_t> offsets_, sum_offsets_;
  std::vector<std::span<const std::byte>> payloads_;
  CodingTimes times_;
};

// Bytes that a rank receives in either, for a gradient of context.shape in a world of `world`
// ranks.
int64_t GatheredBytes(const Codec& codec, const EncodeContext& context, int world);
int64_t ShardedBytes(const Codec& codec, const EncodeContext& context, int world);

// Of the sharded route: what a rank sends to the owner of a part, and the owner to each rank.
struct PartBytes {
  int64_t gradient = 0, sum = 0;
};
PartBytes PartBytesOf(const Codec& codec, const EncodeContext& context, int world);

}  // namespace ringtail

#endif  // RINGTAIL_DIST_COMPRESSION_EXCHANGE_PAYLOAD_EXCHANGE_H_
