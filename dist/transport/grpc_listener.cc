#include "dist/transport/grpc_listener.h"

#include <fmt/format.h>
#include <grpc/grpc.h>
#include <grpc/support/log.h>

#include "core/logging.h"

namespace ringtail {
namespace {

// HTTP/2's own window, for what has been sent and not read yet: more than our credit allows
// (peer_messages.h), so that it never stops us, and fixed. Left to itself gRPC measures the
// bandwidth to find one, and is a third slower on a fast connection.
constexpr int kWindowBytes = 8 << 20;
constexpr int kHttpFrameBytes = 1 << 20;

// What both ends set; `set(name, value)`.
template <typename Set>
void SetCommonArguments(const GrpcOptions& options, const Set& set) {
  set(GRPC_ARG_HTTP2_STREAM_LOOKAHEAD_BYTES, kWindowBytes);
  set(GRPC_ARG_HTTP2_BDP_PROBE, 0);
  set(GRPC_ARG_HTTP2_MAX_FRAME_SIZE, kHttpFrameBytes);
  set(GRPC_ARG_KEEPALIVE_TIME_MS, static_cast<int>(options.keepalive_time.count()));
  set(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, static_cast<int>(options.keepalive_timeout.count()));
  set(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
  set(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);  // as many as keepalive wants
  set(GRPC_ARG_HTTP2_MAX_PING_STRIKES, 0);        // and whoever gets them does not mind
}

// gRPC stops its own threads with the last of its objects, and may wait ten seconds for one of
// them. So once it has been started it stays, as long as the process does. Its log is for those who
// look into gRPC: what matters of it is in our errors.
void StartGrpcForGood() {
  static const bool once = [] {
    gpr_set_log_function([](gpr_log_func_args* line) { LogDebug(line->message); });
    grpc_init();
    return true;
  }();
  static_cast<void>(once);
}

}  // namespace

GrpcServer::~GrpcServer() {
  if (server == nullptr) return;  // taken over, or never started
  server->Shutdown(std::chrono::system_clock::now());
  queue->Shutdown();
  RunGrpcCallbacks(queue.get());
}

StatusOr<std::unique_ptr<GrpcListener>> GrpcListener::Listen(const std::string& address,
                                                             const GrpcOptions& options) {
  StartGrpcForGood();
  auto listener = std::make_unique<GrpcServer>(options);
  grpc::ServerBuilder builder;
  SetCommonArguments(options,
                     [&](const char* name, int value) { builder.AddChannelArgument(name, value); });
  builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);  // a port in use is an error
  builder.SetMaxReceiveMessageSize(kMaxGrpcMessageBytes);
  builder.SetMaxSendMessageSize(kMaxGrpcMessageBytes);
  int port = 0;
  builder.AddListeningPort(address, grpc::InsecureServerCredentials(), &port);
  builder.RegisterService(&listener->service);
  listener->queue = builder.AddCompletionQueue();
  listener->server = builder.BuildAndStart();
  if (listener->server == nullptr || port == 0) {
    return Status(StatusCode::kUnavailable,
                  fmt::format("cannot listen at {}: is it in use, or of another host?", address));
  }
  listener->bound_address = address;
  if (!address.starts_with("unix:")) {
    const size_t colon = address.rfind(':');
    listener->bound_address = fmt::format("{}:{}", address.substr(0, colon), port);
  }
  return std::unique_ptr<GrpcListener>(std::move(listener));
}

std::shared_ptr<grpc::Channel> DialGrpc(const std::string& address, const GrpcOptions& options) {
  grpc::ChannelArguments arguments;
  SetCommonArguments(options, [&](const char* name, int value) { arguments.SetInt(name, value); });
  arguments.SetMaxReceiveMessageSize(kMaxGrpcMessageBytes);
  arguments.SetMaxSendMessageSize(kMaxGrpcMessageBytes);
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  arguments.SetInt(GRPC_ARG_ENABLE_RETRIES, 0);     // they would keep the slices
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);  // the address is the peer
  arguments.SetInt(GRPC_ARG_SERVICE_CONFIG_DISABLE_RESOLUTION, 1);
  // While the peer does not listen yet.
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 50);
  arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, 1000);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 500);
  return grpc::CreateCustomChannel(address, grpc::InsecureChannelCredentials(), arguments);
}

}  // namespace ringtail
