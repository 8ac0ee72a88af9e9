// How a shard's weights travel to a worker (dist.asynchronous.pull).
//
//   F32     weights                                          4 bytes a weight
//   BF16    weights, each rounded to 16 bits                 2
//   DELTA   weights less a key, by linear_codec.h           1.03, and 4 more with a new key
//
// A key is a version of the weights that workers have as floats. The first one is that of the first
// pull; after `key_versions` updates the next pull makes another, and each worker gets it with its
// own next pull. What is added to a key is off by 1/254 of the largest change of 1024 weights, and
// no such error is in the next pull: the difference is always that to the key.
//
//   update      0     ..    127   128   ..    256        key_versions 128, workers A and B
//   pull of A   key 0, d0   d     key 128, d  key 256, d    d: a difference to the key it has
//   pull of B   key 0, d0   d     d: B has key 128 by now only if it has pulled since
//
//   payload of DELTA      | version of the key, i64 | key, f32 (only if new) | difference |
//
// The length says whether there is a key. Numbers are in the order of x86.
// Memory: a block of the shard's size on a server, whatever the number of workers, and one on a
// worker; only DELTA needs it. Errors of a decoder: DataLoss for lengths, keys and codes that no
// encoder can have written. Thread-safety: none. Cost: a pass or two over the weights.
#ifndef RINGTAIL_DIST_PARAMETER_SERVER_PULL_CODING_H_
#define RINGTAIL_DIST_PARAMETER_SERVER_PULL_CODING_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/status.h"
#include "dist/parameter_server/parameter_server.pb.h"

namespace ringtail {

inline constexpr int64_t kNoKey = -1;

// Of a shard.
class PullEncoder {
 public:
  PullEncoder(AsynchronousConfig::Pull form, int64_t key_versions, int64_t elements);

  // `weights` are those of `version`, which never falls; `known_key`: the key that the worker has
  // (PullDecoder::key), or kNoKey. The payload is valid until the next call, and starts at a
  // multiple of 8 bytes.
  std::span<const std::byte> Encode(std::span<const float> weights, int64_t version,
                                    int64_t known_key);

 private:
  std::span<std::byte> Buffer(int64_t bytes);
  std::span<const std::byte> EncodeDelta(std::span<const float> weights, int64_t known_key);

  const AsynchronousConfig::Pull form_;
  const int64_t key_versions_, elements_;
  int64_t key_version_ = kNoKey;
  std::vector<float> key_, difference_;
  std::vector<uint64_t> buffer_;
};

// Of a worker, for one shard.
class PullDecoder {
 public:
  PullDecoder(AsynchronousConfig::Pull form, int64_t elements) : form_(form), elements_(elements) {}

  // The longest payload.
  int64_t MostBytes() const;
  // The key that it has, to be sent with the next pull.
  int64_t key() const { return key_version_; }
  // `payload` starts at a multiple of 8 bytes; `weights` are undefined after an error.
  Status Decode(std::span<const std::byte> payload, std::span<float> weights);

 private:
  Status DecodeDelta(std::span<const std::byte> payload, std::span<float> weights);

  const AsynchronousConfig::Pull form_;
  const int64_t elements_;
  int64_t key_version_ = kNoKey;
  std::vector<float> key_;
};

}  // namespace ringtail

#endif  // RINGTAIL_DIST_PARAMETER_SERVER_PULL_CODING_H_
