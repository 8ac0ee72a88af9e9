#include "dist/transport/door/opening_bytes.h"

namespace ringtail {
namespace {

constexpr std::string_view kPreface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
static_assert(kPreface.size() == kOpeningBytes);

constexpr unsigned kHandshakeRecord = 22, kClientHello = 1;
constexpr size_t kRecordHeaderBytes = 5;
constexpr size_t kMinRecordBytes = 4, kMaxRecordBytes = 16384;

unsigned At(std::string_view bytes, size_t i) { return static_cast<unsigned char>(bytes[i]); }

size_t PlainOpening(std::string_view first) {
  const std::string_view expected = kPreface.substr(0, first.size());
  if (!first.starts_with(expected)) return 0;
  return first.size() < kPreface.size() ? first.size() + 1 : kPreface.size();
}

size_t TlsOpening(std::string_view first) {
  const size_t bytes = first.size();
  if (bytes > 0 && At(first, 0) != kHandshakeRecord) return 0;
  if (bytes > 1 && At(first, 1) != 3) return 0;
  if (bytes > 2 && At(first, 2) > 4) return 0;
  if (bytes <= kRecordHeaderBytes) return bytes + 1;
  const size_t record = At(first, 3) << 8 | At(first, 4);
  if (record < kMinRecordBytes || record > kMaxRecordBytes) return 0;
  if (At(first, kRecordHeaderBytes) != kClientHello) return 0;
  return kRecordHeaderBytes + record;
}

}  // namespace

size_t OpeningBytes(std::string_view first, bool tls) {
  return tls ? TlsOpening(first) : PlainOpening(first);
}

bool LooksLikeTls(std::string_view first) {
  return first.size() > 1 && At(first, 0) == kHandshakeRecord && At(first, 1) == 3;
}

}  // namespace ringtail
