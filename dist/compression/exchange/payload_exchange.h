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
  // Both sides of the all-to-all: one block per rank, which holds the payloads of all layers.
  struct Blocks {
    std::span<std::byte> sent, got;
    int64_t bytes = 0;  // per block
    int world = 1, own = 0;

    std::span<std::byte> Sent(int rank, int64_t offset) const {
      return sent.subspan(rank * bytes + offset);
    }
    std::span<std::byte> Got(int rank, int64_t offset) const {
      return got.subspan(rank * bytes + offset);
    }
    // EncodeContext::rank of the second encoding: its draws differ from those for the gradient.
    int SecondTime(int rank) const { return world + rank; }
  };

  std::span<std::byte> Buffer(size_t bytes);
  // Sets offsets_, where the payload of each gradient starts in a block. Returns the bytes of a
  // block.
  int64_t LayOut(std::span<const CodedGradient> gradients,
                 const std::function<int64_t(const CodedGradient&)>& bytes);
  void EncodeParts(std::span<const CodedGradient> gradients, const Blocks& blocks);
  Status AddUpOwnParts(std::span<const CodedGradient> gradients, const Blocks& blocks);
  Status DecodeSums(std::span<const CodedGradient> gradients, const Blocks& blocks);

  std::vector<uint32_t> buffer_;  // payloads start at a multiple of 4 bytes
  std::vector<int64_t> offsets_;
  std::vector<std::span<const std::byte>> payloads_;
  CodingTimes times_;
};

// Bytes that a rank receives in either, for a gradient of context.shape in a world of `world`
// ranks.
int64_t GatheredBytes(const Codec& codec, const EncodeContext& context, int world);
int64_t ShardedBytes(const Codec& codec, const EncodeContext& context, int world);

}  // namespace ringtail

#endif  // RINGTAIL_DIST_COMPRESSION_EXCHANGE_PAYLOAD_EXCHANGE_H_
