#include "dist/transport/frames/keyed_hash.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <sys/random.h>

#include <cerrno>
#include <cstdint>

#include "core/check.h"

namespace ringtail {

std::string KeyedHash(std::string_view key, std::initializer_list<std::string_view> parts) {
  std::string text;
  for (const std::string_view part : parts) {
    for (int shift = 0; shift < 64; shift += 8) {
      text.push_back(static_cast<char>(static_cast<uint64_t>(part.size()) >> shift & 0xFF));
    }
    text.append(part);
  }
  std::string hash(kKeyedHashBytes, '\0');
  unsigned int bytes = 0;
  const unsigned char* const done =
      HMAC(EVP_sha256(), key.data(), static_cast<int>(key.size()),
           reinterpret_cast<const unsigned char*>(text.data()), text.size(),
           reinterpret_cast<unsigned char*>(hash.data()), &bytes);
  RT_CHECK(done != nullptr && bytes == kKeyedHashBytes, "OpenSSL has SHA-256");
  return hash;
}

bool EqualInConstantTime(std::string_view a, std::string_view b) {
  return a.size() == b.size() && CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

std::string RandomBytes(size_t bytes) {
  std::string random(bytes, '\0');
  size_t filled = 0;
  while (filled < bytes) {
    const ssize_t got = getrandom(random.data() + filled, bytes - filled, 0);
    RT_CHECK(got >= 0 || errno == EINTR, "the kernel has random bytes");
    if (got > 0) filled += static_cast<size_t>(got);
  }
  return random;
}

}  // namespace ringtail
