// The first bytes of a connection from a rank; so that a connection that begins otherwise is
// sent away before anything is spent on it.
//
//   plain text   "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"        the preface of HTTP/2, 24 bytes
//   TLS          22 | 3, 0 to 4 | length, 2 bytes | 1 ...    a record with a ClientHello in it
//                handshake  version              ClientHello
//
// Sources: RFC 9113 section 3.4; RFC 8446 sections 4 and 5.1 (RFC 5246 for TLS 1.2).
// Thread-safety: a function without state.
#ifndef RINGTAIL_DIST_TRANSPORT_DOOR_OPENING_BYTES_H_
#define RINGTAIL_DIST_TRANSPORT_DOOR_OPENING_BYTES_H_

#include <cstddef>
#include <string_view>

namespace ringtail {

// As much of the beginning as OpeningBytes wants to see.
inline constexpr size_t kOpeningBytes = 24;

// How many bytes there must be before more can be said; `first` are those that are there,
// kOpeningBytes or all of them. No more than there are: this may be a rank. 0: it is none.
size_t OpeningBytes(std::string_view first, bool tls);

// Whether a connection that begins so, with at least 2 bytes, speaks TLS.
bool LooksLikeTls(std::string_view first);

}  // namespace ringtail

#endif  // RINGTAIL_DIST_TRANSPORT_DOOR_OPENING_BYTES_H_
