// What a gRPC server or channel shows of itself and demands of the other, from TlsIdentity.
// Thread-safety: functions without state.
#ifndef RINGTAIL_DIST_TRANSPORT_GRPC_GRPC_CREDENTIALS_H_
#define RINGTAIL_DIST_TRANSPORT_GRPC_GRPC_CREDENTIALS_H_

#include <grpcpp/grpcpp.h>

#include <memory>

#include "dist/transport/transport_listener.h"

namespace ringtail {

// With certificates: both ends show one, and both verify that it is of the same authority, before
// a byte of ours is read. Names in certificates are not compared with addresses: every certificate
// of the job's authority may be any rank, because ranks move between hosts.
// Without: plain TCP.
std::shared_ptr<grpc::ServerCredentials> ServerCredentialsFor(const TlsIdentity& tls);
std::shared_ptr<grpc::ChannelCredentials> ChannelCredentialsFor(const TlsIdentity& tls);

}  // namespace ringtail

#endif  // RINGTAIL_DIST_TRANSPORT_GRPC_GRPC_CREDENTIALS_H_
