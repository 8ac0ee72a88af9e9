// Says why TLS fails. gRPC ends a failed handshake with "Socket closed", whatever the cause.
// OpenSSL appears in the .cc alone. Thread-safety: functions without state.
#ifndef RINGTAIL_DIST_MEMBERSHIP_SECURITY_TLS_CHECK_H_
#define RINGTAIL_DIST_MEMBERSHIP_SECURITY_TLS_CHECK_H_

#include <string>

#include "core/status.h"
#include "dist/transport/door/socket_address.h"
#include "dist/transport/transport_listener.h"

namespace ringtail {

// What the parts of a TlsIdentity are called in errors: their files.
struct TlsNames {
  std::string certificate, key, authority;
};

// InvalidArgument: not PEM, key and certificate do not belong together, the certificate is not
// signed by the authority or is not valid now.
Status CheckTls(const TlsIdentity& tls, const TlsNames& names);

// Shakes hands with the server at `address` as gRPC would (`tls` empty: in plain text), and says
// what is wrong: "it speaks TLS, ...". Empty if nothing is, or if it cannot be found out by
// `deadline`.
std::string ExplainTlsFailure(const SocketAddress& address, const TlsIdentity& tls,
                              Deadline deadline);

}  // namespace ringtail

#endif  // RINGTAIL_DIST_MEMBERSHIP_SECURITY_TLS_CHECK_H_
