// Mutual TLS: which ranks get in, which do not, and what both sides say.
#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <functional>
#include <thread>

#include "core/storage/file.h"
#include "dist/membership/join.h"
#include "dist/membership/membership.grpc.pb.h"
#include "dist/membership/security/security.h"
#include "dist/membership/security/tls_check.h"
#include "dist/transport/door/listening_socket.h"
#include "dist/transport/grpc/grpc_credentials.h"
#include "dist/transport/grpc/grpc_listener.h"
#include "tests/dist/membership/certificates.h"
#include "tests/dist/membership/join_ranks.h"
#include "tests/dist/test_world.h"

#ifdef __SANITIZE_THREAD__
// Beside tests/tsan_suppressions.txt, for this program alone: when a TLS handshake fails, gRPC
// hands its status from thread to thread under locks that the race detector does not see. The copy
// of a string counts as the program's own, as templates do.
extern "C" const char* __tsan_default_suppressions();
extern "C" const char* __tsan_default_suppressions() {
  return "race:std::__cxx11::basic_string*::_M_assign\n";
}
#endif

namespace ringtail {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

const TestAuthority& Authority() {
  static const TestAuthority authority("the job's authority");
  return authority;
}

TEST(JoinTls, RanksWithCertificatesOfOneAuthorityTrainTogether) {
  const ReservedPort port;
  const auto ranks = JoinAll(3, port.number(), [](JoinOptions* options) {
    options->security = Authority().Issue("rank" + std::to_string(options->identity.rank));
  });
  ExpectWorldWorks(ranks);
}

// Rank 0 has TLS and waits; `attempt` happens at its port; then the right rank 1 comes.
void WhileRankZeroWaits(const std::function<void(int port)>& attempt) {
  const ReservedPort port;
  const auto options = [&](int rank) {
    JoinOptions options = TestJoinOptions(rank, 2, port.number());
    options.security = Authority().Issue("rank" + std::to_string(rank));
    return options;
  };
  const std::jthread zero([&] {
    const auto world = JoinWorld(options(0));
    EXPECT_TRUE(world.ok()) << world.status().ToString();
  });
  attempt(port.number());
  const auto right = JoinWorld(options(1));
  EXPECT_TRUE(right.ok()) << right.status().ToString();
}

Status TryToJoin(int port, const SecurityOptions& security,
                 const std::string& token = TestJoinOptions(1, 2, 1).token) {
  JoinOptions options = TestJoinOptions(1, 2, port);
  options.security = security;
  options.token = token;
  const auto world = JoinWorld(options);
  return world.ok() ? Status() : world.status();
}

TEST(JoinTls, APlainRankIsToldThatRankZeroSpeaksTls) {
  WhileRankZeroWaits([](int port) {
    const Status status = TryToJoin(port, {});
    EXPECT_EQ(status.message(),
              "rank 1 cannot talk to rank 0 at 127.0.0.1:" + std::to_string(port) +
                  ": it speaks TLS: give --tls-cert, --tls-key and --tls-ca to "
                  "this rank, too");
  });
}

TEST(JoinTls, ARankOfAnotherAuthorityIsToldSo) {
  WhileRankZeroWaits([](int port) {
    const TestAuthority rogue("another authority");
    const Status status = TryToJoin(port, rogue.Issue("rogue"));
    EXPECT_THAT(status.message(), AllOf(StartsWith("rank 1 cannot talk to rank 0 at 127.0.0.1:"),
                                        HasSubstr("its certificate does not hold before our "
                                                  "authority (--tls-ca): ")));
  });
}

TEST(JoinTls, ARankWithTheRightCertificateAndAnotherJobsTokenIsTurnedAway) {
  WhileRankZeroWaits([](int port) {
    const Status status =
        TryToJoin(port, Authority().Issue("right"), "the token of another job of ours");
    EXPECT_EQ(status.code(), StatusCode::kPermissionDenied);
    EXPECT_THAT(status.message(), HasSubstr("because it has another token"));
  });
}

TEST(JoinTls, APlainRankZeroIsNamedAsSuch) {
  const ReservedPort port;
  const std::jthread zero(
      [&] { EXPECT_TRUE(JoinWorld(TestJoinOptions(0, 2, port.number())).ok()); });
  const Status status = TryToJoin(port.number(), Authority().Issue("rank1"));
  EXPECT_THAT(status.message(), HasSubstr("it does not speak TLS"));
  EXPECT_TRUE(TryToJoin(port.number(), {}).ok());
}

// ---- peers that do not use our client -----------------------------------------------------------

std::string Content(const std::string& path) { return *ReadFileText(path, 1 << 20); }

// Whether a server of ours takes in a client with these credentials: whether it answers a hello.
bool GetsAnAnswer(int port, const std::shared_ptr<grpc::ChannelCredentials>& credentials) {
  const auto channel = grpc::CreateChannel("127.0.0.1:" + std::to_string(port), credentials);
  const auto stub = RendezvousService::NewStub(channel);
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::minutes(2));
  const auto stream = stub->Join(&context);
  RendezvousMessage hello;
  hello.mutable_hello()->set_nonce(std::string(16, 'n'));
  SealedMessage message;
  message.set_body(hello.SerializeAsString());
  stream->Write(message);
  const bool answered = stream->Read(&message);
  context.TryCancel();
  static_cast<void>(stream->Finish());
  return answered;
}

TlsIdentity Tls(const SecurityOptions& files) {
  return {.certificate = Content(files.tls_cert),
          .key = Content(files.tls_key),
          .authority = Content(files.tls_ca)};
}

TEST(JoinTls, TheHandshakeLetsInNobodyWithoutAValidCertificate) {
  WhileRankZeroWaits([](int port) {
    const TlsIdentity right = Tls(Authority().Issue("right"));
    TlsIdentity rogue = Tls(TestAuthority("another authority").Issue("rogue"));
    rogue.authority = right.authority;  // trusts rank 0, is not trusted
    const TlsIdentity expired = Tls(Authority().Issue("expired", -60));
    // Retried while rank 0 does not listen yet; the refusals after it are then refusals.
    while (!GetsAnAnswer(port, ChannelCredentialsFor(right))) {
    }
    EXPECT_FALSE(GetsAnAnswer(port, ChannelCredentialsFor(rogue)));
    EXPECT_FALSE(GetsAnAnswer(port, ChannelCredentialsFor(expired)));
    grpc::SslCredentialsOptions nothing_to_show;
    nothing_to_show.pem_root_certs = right.authority;
    EXPECT_FALSE(GetsAnAnswer(port, grpc::SslCredentials(nothing_to_show)));
    EXPECT_FALSE(GetsAnAnswer(port, grpc::InsecureChannelCredentials()));
  });
}

TEST(JoinTls, DataStreamsDemandCertificatesToo) {
  const TlsIdentity right = Tls(Authority().Issue("right"));
  TlsIdentity rogue = Tls(TestAuthority("another authority").Issue("rogue"));
  rogue.authority = right.authority;
  auto zero = std::move(*ListenGrpc("127.0.0.1:0", {.tls = right}));
  auto one = std::move(*ListenGrpc("127.0.0.1:0", {.tls = right}));
  const std::vector<std::string> addresses{zero->address(), one->address()};
  for (const TlsIdentity& wrong : {rogue, TlsIdentity{}}) {
    auto listener = std::move(*ListenGrpc(
        "127.0.0.1:0", {.connect_timeout = std::chrono::milliseconds(500), .tls = wrong}));
    EXPECT_FALSE(listener->Connect({.rank = 1, .addresses = addresses}).ok());
  }
  World world(2);
  {
    const std::jthread thread(
        [&] { world[1] = std::move(*one->Connect({.rank = 1, .addresses = addresses})); });
    world[0] = std::move(*zero->Connect({.rank = 0, .addresses = addresses}));
  }
  EXPECT_EQ(world[0]->world_size(), 2);
}

TEST(ExplainTlsFailure, NamesACertificateThatTheServerRefuses) {
  WhileRankZeroWaits([](int port) {
    const TlsIdentity right = Tls(Authority().Issue("right"));
    while (!GetsAnAnswer(port, ChannelCredentialsFor(right))) {
    }
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::minutes(2);
    const auto to = ResolveHost("127.0.0.1", port, deadline);
    ASSERT_TRUE(to.ok());
    TlsIdentity rogue = Tls(TestAuthority("another authority").Issue("rogue"));
    rogue.authority = right.authority;
    EXPECT_THAT(ExplainTlsFailure(to->front(), rogue, deadline),
                StartsWith("it does not accept the certificate of this rank"));
    EXPECT_EQ(ExplainTlsFailure(to->front(), right, deadline), "");
  });
}

// OpenSSL then writes to a connection that is gone, for which the kernel sends SIGPIPE.
TEST(ExplainTlsFailure, SurvivesAServerThatHangsUp) {
  const auto listening = std::move(*ListenAt("127.0.0.1:0", std::chrono::seconds(10)));
  const std::jthread server([&](const std::stop_token& stop) {
    while (!stop.stop_requested()) {
      pollfd ready{.fd = listening.socket.number(), .events = POLLIN, .revents = 0};
      sockaddr_storage peer;
      if (poll(&ready, 1, 10) > 0) AcceptFrom(listening.socket, &peer);  // and closes it
    }
  });
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::minutes(2);
  const auto to = ResolveHost("127.0.0.1", listening.port, deadline);
  ASSERT_TRUE(to.ok());
  for (int i = 0; i < 100; ++i) EXPECT_EQ(ExplainTlsFailure(to->front(), {}, deadline), "");
}

// ---- files --------------------------------------------------------------------------------------

TEST(LoadTls, RefusesWhatWouldFailInTheHandshake) {
  const SecurityOptions good = Authority().Issue("good");
  EXPECT_TRUE(LoadTls(good).ok());
  EXPECT_TRUE(LoadTls({})->empty());

  const SecurityOptions expired = Authority().Issue("expired2", -60);
  EXPECT_THAT(LoadTls(expired).status().message(),
              AllOf(HasSubstr(expired.tls_cert), HasSubstr("expired2"),
                    HasSubstr("certificate has expired")));
  const TestAuthority other("other");
  SecurityOptions stranger = other.Issue("stranger");
  stranger.tls_ca = good.tls_ca;
  EXPECT_THAT(LoadTls(stranger).status().message(),
              HasSubstr("does not hold before the authority in " + good.tls_ca));
  SecurityOptions mixed = good;
  mixed.tls_key = expired.tls_key;
  EXPECT_THAT(LoadTls(mixed).status().message(),
              HasSubstr("is not that of the certificate in " + good.tls_cert));
  mixed.tls_key = good.tls_cert;
  ASSERT_EQ(chmod(good.tls_cert.c_str(), 0600), 0);
  EXPECT_THAT(LoadTls(mixed).status().message(), HasSubstr("holds no private key"));
  mixed = good;
  mixed.tls_ca = good.tls_key;
  EXPECT_THAT(LoadTls(mixed).status().message(), HasSubstr("holds no certificate"));
  ASSERT_EQ(chmod(good.tls_key.c_str(), 0644), 0);
  EXPECT_EQ(LoadTls(good).status().code(), StatusCode::kPermissionDenied);
  EXPECT_THAT(LoadTls(good).status().message(),
              AllOf(HasSubstr(good.tls_key), HasSubstr("mode 0644"), HasSubstr("chmod 600")));
}

TEST(CheckSecurity, DemandsATokenAndTlsBeyondThisMachine) {
  const std::string token = "0123456789abcdef";
  for (const std::string host : {"127.0.0.1", "127.3.2.1", "::1", "localhost"}) {
    EXPECT_TRUE(CheckSecurity({}, "", host).ok()) << host;
  }
  for (const std::string host : {"10.0.0.7", "0.0.0.0", "node7", "fd00::7"}) {
    EXPECT_THAT(CheckSecurity({.insecure = true}, "", host).message(),
                AllOf(HasSubstr("\"export RINGTAIL_TOKEN=$(openssl rand -hex 16)\""),
                      HasSubstr("--token-file"), HasSubstr("RINGTAIL_TOKEN_FILE")));
    EXPECT_EQ(CheckSecurity({}, token, host).code(), StatusCode::kFailedPrecondition);
    EXPECT_THAT(CheckSecurity({}, token, host).message(),
                AllOf(HasSubstr(host), HasSubstr("--insecure"), HasSubstr("--tls-cert")));
    EXPECT_TRUE(CheckSecurity({.insecure = true}, token, host).ok());
    EXPECT_TRUE(CheckSecurity({.tls_cert = "a", .tls_key = "b", .tls_ca = "c"}, token, host).ok());
  }
  EXPECT_THAT(CheckSecurity({.tls_cert = "a", .tls_ca = "c"}, token, "127.0.0.1").message(),
              HasSubstr("all of --tls-cert, --tls-key and --tls-ca"));
}

TEST(JoinWorld, DoesNotStartBeyondThisMachineWithoutTls) {
  for (const int rank : {0, 1}) {
    JoinOptions options = TestJoinOptions(rank, 2, 29500);
    options.identity.master_address = "192.0.2.1";
    EXPECT_THAT(JoinWorld(options).status().message(), HasSubstr("--insecure"));
  }
}

}  // namespace
}  // namespace ringtail
