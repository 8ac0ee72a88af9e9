#include "dist/membership/security/security.h"

#include <fmt/format.h>

#include "core/storage/file.h"
#include "dist/membership/security/private_file.h"
#include "dist/membership/security/tls_check.h"
#include "dist/transport/door/socket_address.h"

namespace ringtail {
namespace {

constexpr int64_t kMaxPemBytes = 1 << 20;

}  // namespace

Status CheckSecurity(const SecurityOptions& options, const std::string& token,
                     const std::string& master_address) {
  const int files = !options.tls_cert.empty() + !options.tls_key.empty() + !options.tls_ca.empty();
  if (files != 0 && files != 3) {
    return InvalidArgument("TLS needs all of --tls-cert, --tls-key and --tls-ca");
  }
  if (IsLoopbackHost(master_address)) return {};
  const std::string reach =
      fmt::format("the job reaches beyond this machine (rank 0 is at {})", master_address);
  if (token.empty()) {
    return FailedPrecondition(
        reach +
        " and has no token: before srun or mpirun, \"export RINGTAIL_TOKEN=$(openssl rand -hex "
        "16)\"; or give all ranks the same one with --token-file or RINGTAIL_TOKEN_FILE, in a file "
        "of mode 0600 (ringtail_launch makes one by itself)");
  }
  if (files == 0 && !options.insecure) {
    return FailedPrecondition(
        reach +
        " without encryption: give --tls-cert, --tls-key and --tls-ca; or --insecure if "
        "everybody on this network may read and change what is sent; or 127.0.0.1 as the "
        "address of rank 0 if all ranks are on this machine");
  }
  return {};
}

StatusOr<TlsIdentity> LoadTls(const SecurityOptions& options) {
  if (options.tls_cert.empty()) return TlsIdentity{};
  TlsIdentity tls;
  RT_ASSIGN_OR_RETURN(tls.certificate, ReadFileText(options.tls_cert, kMaxPemBytes));
  RT_ASSIGN_OR_RETURN(tls.key, ReadPrivateFile(options.tls_key));
  RT_ASSIGN_OR_RETURN(tls.authority, ReadFileText(options.tls_ca, kMaxPemBytes));
  RT_RETURN_IF_ERROR(CheckTls(
      tls, {.certificate = options.tls_cert, .key = options.tls_key, .authority = options.tls_ca}));
  return tls;
}

}  // namespace ringtail
