// How ranks prove that they know a secret without sending it: a keyed hash (HMAC-SHA256, RFC 2104)
// over what both have said before, fresh random numbers included.
//
//   A: a fresh nonce a ──>             B: a fresh nonce b
//   A <── b
//   A: HMAC(secret, a, b, ...) ──>     B computes the same, and compares
//
// An eavesdropper learns nothing that helps the next time: the nonces are different then.
// OpenSSL does the hashing; it appears in the .cc alone.
// Thread-safety: functions without state. Cost: about a microsecond each.
#ifndef RINGTAIL_DIST_TRANSPORT_FRAMES_KEYED_HASH_H_
#define RINGTAIL_DIST_TRANSPORT_FRAMES_KEYED_HASH_H_

#include <cstddef>
#include <initializer_list>
#include <string>
#include <string_view>

namespace ringtail {

inline constexpr size_t kKeyedHashBytes = 32;

// The 32 bytes of HMAC-SHA256. Each part goes in with its length before it, so that no two lists
// of parts read the same.
std::string KeyedHash(std::string_view key, std::initializer_list<std::string_view> parts);

// Takes as long for the first byte that differs as for the last, so that time tells nothing.
bool EqualInConstantTime(std::string_view a, std::string_view b);

// From the kernel's generator, good for keys and nonces.
std::string RandomBytes(size_t bytes);

}  // namespace ringtail

#endif  // RINGTAIL_DIST_TRANSPORT_FRAMES_KEYED_HASH_H_
