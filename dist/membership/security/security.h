// What a job must have before it opens a port, and the files of mutual TLS.
//
//   all ranks on this machine            nothing needed; a token keeps other users out
//   beyond it                            a token, and either TLS files or --insecure
//
// With TLS every rank shows a certificate and proves that it has its key, in both directions, and
// whatever is not of the job's authority (--tls-ca) is refused in the handshake. The names in
// certificates are not compared with host names: every certificate of that authority may be any
// rank, so make an authority for the purpose. Which job a rank belongs to is the token's business.
// Thread-safety: functions without state.
#ifndef RINGTAIL_DIST_MEMBERSHIP_SECURITY_SECURITY_H_
#define RINGTAIL_DIST_MEMBERSHIP_SECURITY_SECURITY_H_

#include <string>

#include "core/status.h"
#include "dist/transport/transport_listener.h"

namespace ringtail {

struct SecurityOptions {
  std::string tls_cert, tls_key, tls_ca;  // PEM files: all of them, or none
  bool insecure = false;                  // plain TCP beyond this machine
};

// OK if a world whose rank 0 is at `master_address` may be formed like that; FailedPrecondition
// with what is missing.
Status CheckSecurity(const SecurityOptions& options, const std::string& token,
                     const std::string& master_address);

// Empty if no files are given. Files are not just read: InvalidArgument if a certificate is not
// signed by the authority, has expired, or is of another key; PermissionDenied if other users may
// read the key. So what would fail in a handshake without a reason fails here with one.
StatusOr<TlsIdentity> LoadTls(const SecurityOptions& options);

}  // namespace ringtail

#endif  // RINGTAIL_DIST_MEMBERSHIP_SECURITY_SECURITY_H_
