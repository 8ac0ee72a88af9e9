#include "dist/transport/grpc/grpc_server.h"

#include <fmt/format.h>
#include <grpc/grpc.h>
#include <grpc/support/log.h>
#include <sys/resource.h>

#include <string_view>

#include "core/logging.h"
#include "dist/transport/door/log_limiter.h"
#include "dist/transport/door/socket_address.h"
#include "dist/transport/grpc/grpc_credentials.h"

namespace ringtail {
namespace {

// HTTP/2's own windows, for bytes that have been sent and not read yet. That of a stream can be
// set. That of a connection cannot: gRPC gives 64 KiB and the rest of the message that is being
// read. More is requested with the next message, and the answer waits behind everything that goes
// the other way:
//
//   rank 0 -> rank 1   [message 1    ][64 KiB]..... the wire is idle ......[message 2
//   rank 1 -> rank 0   [message of its own   ][what its kernel holds    ][more  ]
//
// Only if gRPC may measure the bandwidth, the window is 4 MiB or more from the beginning, which is
// worth that on a network. Within a machine the small one is better, because what is on its way
// stays in the cache: 0.8 instead of 1.1 s of CPU per GB.
constexpr int kWindowBytes = 8 << 20;
constexpr int kHttpFrameBytes = 1 << 20;

bool OverNetwork(const std::string& address, const TransportOptions& options) {
  return options.over_network.value_or(!StaysInThisMachine(address));
}

// What both ends set for a connection to or from `address`; `set(name, value)`.
template <typename Set>
void SetCommonArguments(const std::string& address, const TransportOptions& options,
                        const Set& set) {
  set(GRPC_ARG_HTTP2_STREAM_LOOKAHEAD_BYTES, kWindowBytes);
  set(GRPC_ARG_HTTP2_BDP_PROBE, OverNetwork(address, options));
  set(GRPC_ARG_HTTP2_MAX_FRAME_SIZE, kHttpFrameBytes);
  set(GRPC_ARG_KEEPALIVE_TIME_MS, static_cast<int>(options.keepalive_time.count()));
  set(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, static_cast<int>(options.keepalive_timeout.count()));
  set(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
  set(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);  // as many as keepalive wants
  set(GRPC_ARG_HTTP2_MAX_PING_STRIKES, 0);        // and the peer accepts them all
}

// A world of many ranks needs many connections: as many files as the system lets us have. If it
// refuses, the limit stays as it is.
void RaiseFileLimit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur == limit.rlim_max) return;
  limit.rlim_cur = limit.rlim_max;
  (void)setrlimit(RLIMIT_NOFILE, &limit);
}

// A failed TLS handshake is seen nowhere but in gRPC's log.
void LogOfGrpc(gpr_log_func_args* line) {
  static LogLimiter limiter;
  const std::string_view message = line->message;
  if (message.find("Handshake failed") == std::string_view::npos &&
      message.find("handshake failed") == std::string_view::npos) {
    return;
  }
  if (const auto note = limiter.Allow()) {
    LogWarning(fmt::format("a connection failed in its TLS handshake: {}{}", message, *note));
  }
}

// gRPC stops its own threads with the last of its objects, and may wait ten seconds for one of
// them. So once it has been started it stays, as long as the process does. Its log is for
// debugging gRPC: what matters of it is in our errors.
void StartGrpcForGood() {
  static const bool once = [] {
    RaiseFileLimit();
    gpr_set_log_function(LogOfGrpc);
    grpc_init();
    return true;
  }();
  static_cast<void>(once);
}

}  // namespace

bool StaysInThisMachine(std::string_view address) {
  if (address.starts_with("unix:")) return true;
  std::string_view host = address.substr(0, address.rfind(':'));
  if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
  return IsLoopbackHost(std::string(host));
}

GrpcServer::~GrpcServer() {
  if (server == nullptr) return;  // ended by its transport, or never started
  door->Close();
  server->Shutdown(std::chrono::system_clock::now());
  queue->Shutdown();
  RunGrpcCallbacks(queue.get());
}

StatusOr<std::unique_ptr<GrpcDoor>> ConfigureGrpcServer(const std::string& address,
                                                        const TransportOptions& options,
                                                        grpc::ServerBuilder* builder) {
  StartGrpcForGood();
  const auto set = [&](const char* name, int value) { builder->AddChannelArgument(name, value); };
  SetCommonArguments(address, options, set);
  constexpr int kLimitMs = std::chrono::milliseconds(kStrangerLimit).count();
  set(GRPC_ARG_SERVER_HANDSHAKE_TIMEOUT_MS, kLimitMs);
  set(GRPC_ARG_MAX_CONNECTION_IDLE_MS, kLimitMs);  // without a stream, that is
  set(GRPC_ARG_MAX_CONCURRENT_STREAMS, 1);         // a rank has one on its connection
  return GrpcDoor::Listen(address, options, builder);
}

StatusOr<std::unique_ptr<GrpcServer>> GrpcServer::Listen(const std::string& address,
                                                         const TransportOptions& options) {
  std::unique_ptr<GrpcServer> started(new GrpcServer(options));
  grpc::ServerBuilder builder;
  // A server's settings are the same for all of its connections. Over a network the kernel asks
  // whether the peer's host lives (listening_socket.h), on those that carry data and the others.
  TransportOptions asking = options;
  if (OverNetwork(address, options)) asking.keepalive_time = kNoKeepalive;
  RT_ASSIGN_OR_RETURN(started->door, ConfigureGrpcServer(address, asking, &builder));
  builder.SetMaxReceiveMessageSize(kMaxGrpcMessageBytes);
  builder.SetMaxSendMessageSize(kMaxGrpcMessageBytes);
  builder.RegisterService(&started->service);
  started->queue = builder.AddCompletionQueue();
  started->server = builder.BuildAndStart();
  if (started->server == nullptr) {
    return Internal(fmt::format("gRPC does not listen at {}", address));
  }
  return started;
}

std::shared_ptr<grpc::Channel> DialGrpc(const std::string& address,
                                        const TransportOptions& options) {
  StartGrpcForGood();
  grpc::ChannelArguments arguments;
  SetCommonArguments(address, options,
                     [&](const char* name, int value) { arguments.SetInt(name, value); });
  arguments.SetMaxReceiveMessageSize(kMaxGrpcMessageBytes);
  arguments.SetMaxSendMessageSize(kMaxGrpcMessageBytes);
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  arguments.SetInt(GRPC_ARG_ENABLE_RETRIES, 0);     // they would keep the slices
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);  // the address is the peer
  arguments.SetInt(GRPC_ARG_SERVICE_CONFIG_DISABLE_RESOLUTION, 1);
  // While the peer does not listen yet. The least is also the time for an attempt: TCP, TLS and the
  // first answer, which take three round trips of a slow network and more if a packet is lost.
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 50);
  arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, 5000);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 500);
  return grpc::CreateCustomChannel(address, ChannelCredentialsFor(options.tls), arguments);
}

}  // namespace ringtail
