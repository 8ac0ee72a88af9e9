#include "dist/transport/grpc/grpc_credentials.h"

#include <grpcpp/security/tls_certificate_provider.h>
#include <grpcpp/security/tls_certificate_verifier.h>
#include <grpcpp/security/tls_credentials_options.h>

#include <string>
#include <vector>

namespace ringtail {
namespace {

std::shared_ptr<grpc::experimental::CertificateProviderInterface> Certificates(
    const TlsIdentity& tls) {
  return std::make_shared<grpc::experimental::StaticDataCertificateProvider>(
      tls.authority,
      std::vector<grpc::experimental::IdentityKeyCertPair>{{tls.key, tls.certificate}});
}

// The chain of certificates is OpenSSL's to verify, in the handshake; this is about what comes
// after it, the comparison of names.
void CompareNoNames(grpc::experimental::TlsCredentialsOptions* options) {
  options->set_certificate_verifier(
      std::make_shared<grpc::experimental::NoOpCertificateVerifier>());
  options->set_check_call_host(false);
}

}  // namespace

std::shared_ptr<grpc::ServerCredentials> ServerCredentialsFor(const TlsIdentity& tls) {
  if (tls.empty()) return grpc::InsecureServerCredentials();
  grpc::experimental::TlsServerCredentialsOptions options(Certificates(tls));
  options.watch_root_certs();
  options.watch_identity_key_cert_pairs();
  options.set_cert_request_type(GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY);
  CompareNoNames(&options);
  return grpc::experimental::TlsServerCredentials(options);
}

std::shared_ptr<grpc::ChannelCredentials> ChannelCredentialsFor(const TlsIdentity& tls) {
  if (tls.empty()) return grpc::InsecureChannelCredentials();
  grpc::experimental::TlsChannelCredentialsOptions options;
  options.set_certificate_provider(Certificates(tls));
  options.watch_root_certs();
  options.watch_identity_key_cert_pairs();
  options.set_verify_server_certs(true);
  CompareNoNames(&options);
  return grpc::experimental::TlsCredentials(options);
}

}  // namespace ringtail
