// The doorkeeper alone: which connections it lets in, which it turns away, and what it survives.
#include "dist/transport/door/doorkeeper.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <thread>

#include "core/mutex.h"
#include "tests/dist/membership/join_ranks.h"
#include "tests/dist/test_world.h"

namespace ringtail {
namespace {

constexpr std::string_view kPreface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
constexpr std::chrono::hours kNever{1};

// What gRPC is to the doorkeeper.
class Inside {
 public:
  void Take(int descriptor) {
    MutexLock lock(&mutex_);
    sockets_.emplace_back(descriptor);
    changed_.NotifyAll();
  }
  // The one that has come in as number `i`, from 0; waits for it.
  int At(size_t i) {
    MutexLock lock(&mutex_);
    while (sockets_.size() <= i) {
      if (!changed_.WaitUntil(&mutex_, TestDeadline())) return -1;
    }
    return sockets_[i].number();
  }
  void Close(size_t i) {
    MutexLock lock(&mutex_);
    sockets_[i] = OwnedDescriptor();
  }
  size_t count() {
    MutexLock lock(&mutex_);
    return sockets_.size();
  }

 private:
  Mutex mutex_;
  ConditionVariable changed_;
  std::vector<OwnedDescriptor> sockets_ RT_GUARDED_BY(mutex_);
};

struct House {
  explicit House(Doorkeeper::Options options) {
    options.address = "127.0.0.1:0";
    keeper = std::move(*Doorkeeper::Listen(options));
    keeper->Open([this](int descriptor) { inside.Take(descriptor); });
  }
  OwnedDescriptor Dial(std::string_view words = "") const {
    OwnedDescriptor socket(ConnectStranger(keeper->port()));
    EXPECT_GE(socket.number(), 0);
    Say(socket, words);
    return socket;
  }
  static void Say(const OwnedDescriptor& socket, std::string_view words) {
    EXPECT_EQ(send(socket.number(), words.data(), words.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(words.size()));
  }

  Inside inside;  // goes after the keeper
  std::unique_ptr<Doorkeeper> keeper;
};

std::string NameOf(const OwnedDescriptor& dialled) {
  sockaddr_storage own{};
  socklen_t bytes = sizeof(own);
  getsockname(dialled.number(), reinterpret_cast<sockaddr*>(&own), &bytes);
  return ConnectionName(own);
}

// What the other end says until it hangs up; waits for that.
std::string HeardUntilTheEnd(const OwnedDescriptor& socket) {
  std::string heard;
  for (;;) {
    pollfd ready{.fd = socket.number(), .events = POLLIN, .revents = 0};
    if (poll(&ready, 1, 180'000) <= 0) return "the other end has not hung up";
    std::array<char, 100> bytes;
    const ssize_t n = recv(socket.number(), bytes.data(), bytes.size(), 0);
    if (n <= 0) return heard;
    heard.append(bytes.data(), static_cast<size_t>(n));
  }
}

TEST(Doorkeeper, LetsARankInWithEverythingItHasSaid) {
  House house({.limit = kNever});
  const OwnedDescriptor rank = house.Dial(std::string(kPreface) + "and more");
  const int inside = house.inside.At(0);
  std::array<char, 32> bytes{};
  EXPECT_EQ(recv(inside, bytes.data(), bytes.size(), 0), 32);
  EXPECT_EQ(std::string_view(bytes.data(), bytes.size()), std::string(kPreface) + "and more");
  // As gRPC sets up the connections that it accepts itself.
  int value = 0;
  socklen_t size = sizeof(value);
  EXPECT_EQ(getsockopt(inside, IPPROTO_TCP, TCP_NODELAY, &value, &size), 0);
  EXPECT_EQ(value, 1);
  EXPECT_EQ(getsockopt(inside, IPPROTO_TCP, TCP_USER_TIMEOUT, &value, &size), 0);
  EXPECT_EQ(value, 10'000);
  EXPECT_EQ(getsockopt(inside, SOL_SOCKET, SO_RCVLOWAT, &value, &size), 0);
  EXPECT_EQ(value, 1);
  EXPECT_NE(fcntl(inside, F_GETFL) & O_NONBLOCK, 0);
}

TEST(Doorkeeper, LetsARankInThatSaysItsPrefaceByteByByte) {
  House house({.limit = kNever});
  const OwnedDescriptor slow = house.Dial();
  for (size_t i = 0; i + 1 < kPreface.size(); ++i) {
    House::Say(slow, kPreface.substr(i, 1));
    // Another connection comes and goes, so that the keeper has been awake in between.
    EXPECT_EQ(HeardUntilTheEnd(house.Dial("x")), "");
    EXPECT_EQ(house.inside.count(), 0U);
  }
  House::Say(slow, kPreface.substr(kPreface.size() - 1));
  EXPECT_GE(house.inside.At(0), 0);
}

TEST(Doorkeeper, SendsAwayAtOnceWhoeverBeginsOtherwise) {
  House house({.limit = kNever});
  for (int kind = 0; kind < 4; ++kind) {
    const bool tls = kind == 2;
    const std::string settings("\0\0\0\4\0\0\0\0\0", 9);
    EXPECT_EQ(HeardUntilTheEnd(house.Dial(Garbage(kind))), tls ? settings : "") << kind;
  }
  EXPECT_EQ(HeardUntilTheEnd(house.Dial("PRI * HTTP/1.0")), "");
  EXPECT_EQ(house.inside.count(), 0U);
}

TEST(Doorkeeper, WithTlsWantsAHello) {
  House house({.tls = true, .limit = kNever});
  EXPECT_EQ(HeardUntilTheEnd(house.Dial(kPreface)), "");
  const OwnedDescriptor rank = house.Dial(Garbage(2));
  EXPECT_GE(house.inside.At(0), 0);
}

TEST(Doorkeeper, WhoSaysNothingOfUseGoesWhenTheTimeIsOver) {
  House house({.limit = std::chrono::milliseconds(200)});
  const OwnedDescriptor silent = house.Dial(), half = house.Dial("PRI *");
  EXPECT_EQ(HeardUntilTheEnd(silent), "");
  EXPECT_EQ(HeardUntilTheEnd(half), "");
  EXPECT_EQ(house.inside.count(), 0U);
}

TEST(Doorkeeper, OfTooManyTheLongestSilentGoes) {
  House house({.limit = kNever, .room_at_door = 3});
  std::vector<OwnedDescriptor> silent;
  for (int i = 0; i < 5; ++i) silent.push_back(house.Dial());
  EXPECT_EQ(HeardUntilTheEnd(silent[0]), "");
  EXPECT_EQ(HeardUntilTheEnd(silent[1]), "");
  for (int i = 2; i < 5; ++i) {
    House::Say(silent[i], kPreface);
    EXPECT_GE(house.inside.At(i - 2), 0);
  }
}

// Inside there is room for one: the next comes in when that has proved itself, has been closed, or
// has been shut down to make room.
TEST(Doorkeeper, WhoIsNotProvedMakesRoomForTheNext) {
  House house({.limit = kNever, .room_inside = 1});
  const OwnedDescriptor first = house.Dial(kPreface);
  EXPECT_GE(house.inside.At(0), 0);
  house.keeper->Proved("ipv4:" + NameOf(first));

  const OwnedDescriptor second = house.Dial(kPreface);
  EXPECT_GE(house.inside.At(1), 0);
  house.inside.Close(1);

  const OwnedDescriptor third = house.Dial(kPreface);
  EXPECT_GE(house.inside.At(2), 0);
  const OwnedDescriptor fourth = house.Dial(kPreface);
  EXPECT_EQ(HeardUntilTheEnd(third), "");  // shut down; but
  EXPECT_EQ(house.inside.count(), 3U);     // until it is closed, it counts
  house.inside.Close(2);
  EXPECT_GE(house.inside.At(3), 0);

  House::Say(first, "still here");
  std::array<char, 64> bytes{};
  EXPECT_EQ(recv(house.inside.At(0), bytes.data(), bytes.size(), 0), 34);
}

TEST(Doorkeeper, WhoDoesNotProveItselfIsShutDownWhenTheTimeIsOver) {
  House house({.limit = std::chrono::milliseconds(100)});
  const OwnedDescriptor unproved = house.Dial(kPreface);
  EXPECT_EQ(HeardUntilTheEnd(unproved), "");
  EXPECT_GE(house.inside.At(0), 0);  // it was inside
}

TEST(Doorkeeper, NobodyComesInBeforeItIsOpenOrOnceItIsClosed) {
  Inside inside;
  auto keeper = std::move(*Doorkeeper::Listen({.address = "127.0.0.1:0", .limit = kNever}));
  const int port = keeper->port();
  const OwnedDescriptor early(ConnectStranger(port));
  House::Say(early, kPreface);
  EXPECT_EQ(inside.count(), 0U);
  keeper->Open([&](int descriptor) { inside.Take(descriptor); });
  EXPECT_GE(inside.At(0), 0);
  const OwnedDescriptor silent(ConnectStranger(port));
  keeper->Close();
  EXPECT_EQ(HeardUntilTheEnd(silent), "");
  EXPECT_LT(ConnectStranger(port), 0);
}

TEST(Doorkeeper, APortInUseIsAnErrorThatNamesIt) {
  const auto first = std::move(*Doorkeeper::Listen({.address = "127.0.0.1:0"}));
  const std::string address = "127.0.0.1:" + std::to_string(first->port());
  const auto second = Doorkeeper::Listen({.address = address});
  EXPECT_EQ(second.status().message(), "cannot listen at " + address + ": Address already in use");
  EXPECT_FALSE(Doorkeeper::Listen({.address = "a name:1"}).ok());
  EXPECT_FALSE(Doorkeeper::Listen({.address = "127.0.0.1"}).ok());
}

// Takes every descriptor that the process may have, up to a limit that is near.
class NoDescriptors {
 public:
  NoDescriptors() {
    getrlimit(RLIMIT_NOFILE, &before_);
    rlimit few = before_;
    few.rlim_cur = static_cast<rlim_t>(OwnedDescriptor(dup(0)).number()) + 20;
    setrlimit(RLIMIT_NOFILE, &few);
    for (int taken = dup(0); taken >= 0; taken = dup(0)) taken_.emplace_back(taken);
  }
  ~NoDescriptors() { setrlimit(RLIMIT_NOFILE, &before_); }

 private:
  rlimit before_{};
  std::vector<OwnedDescriptor> taken_;
};

sockaddr_in Loopback(int port) {
  return {.sin_family = AF_INET,
          .sin_port = htons(static_cast<uint16_t>(port)),
          .sin_addr = {.s_addr = htonl(INADDR_LOOPBACK)}};
}

TEST(Doorkeeper, SurvivesWithoutDescriptors) {
  House house({.limit = kNever});
  const OwnedDescriptor silent = house.Dial();
  const OwnedDescriptor rank(socket(AF_INET, SOCK_STREAM, 0));
  OwnedDescriptor late(socket(AF_INET, SOCK_STREAM, 0));
  const sockaddr_in to = Loopback(house.keeper->port());
  const auto* const address = reinterpret_cast<const sockaddr*>(&to);
  EXPECT_EQ(HeardUntilTheEnd(house.Dial("x")), "");  // so that `silent` is at the door
  {
    const NoDescriptors none;
    // The longest silent gives its descriptor to the next one.
    ASSERT_EQ(connect(rank.number(), address, sizeof(to)), 0);
    EXPECT_EQ(HeardUntilTheEnd(silent), "");
    House::Say(rank, kPreface);
    EXPECT_GE(house.inside.At(0), 0);
    // No connection is at the door: the next one is closed with the descriptor in reserve.
    ASSERT_EQ(connect(late.number(), address, sizeof(to)), 0);
    EXPECT_EQ(HeardUntilTheEnd(late), "");
  }
  const OwnedDescriptor next = house.Dial(kPreface);
  EXPECT_GE(house.inside.At(1), 0);
}

TEST(ConnectionName, IsTheSameForTheSocketAndForGrpc) {
  sockaddr_storage peer{};
  auto* const v4 = reinterpret_cast<sockaddr_in*>(&peer);
  *v4 = Loopback(80);
  EXPECT_EQ(ConnectionName(peer), "127.0.0.1:80");
  EXPECT_EQ(ConnectionNameOfGrpc("ipv4:127.0.0.1:80"), "127.0.0.1:80");

  auto* const v6 = reinterpret_cast<sockaddr_in6*>(&peer);
  *v6 = {.sin6_family = AF_INET6, .sin6_port = htons(80), .sin6_addr = IN6ADDR_LOOPBACK_INIT};
  EXPECT_EQ(ConnectionName(peer), "[::1]:80");
  EXPECT_EQ(ConnectionNameOfGrpc("ipv6:%5B::1%5D:80"), "[::1]:80");
  EXPECT_EQ(ConnectionNameOfGrpc("ipv6:[::1]:80"), "[::1]:80");
  EXPECT_EQ(ConnectionNameOfGrpc("ipv6:%5Bfe80::1%252%5D:80"), "[fe80::1]:80");
  EXPECT_EQ(ConnectionNameOfGrpc("ipv6:%5Bfe80::1%25eth0%5D:80"), "[fe80::1]:80");

  v6->sin6_addr.s6_addr[10] = v6->sin6_addr.s6_addr[11] = 0xFF;
  v6->sin6_addr.s6_addr[12] = 10;
  EXPECT_EQ(ConnectionName(peer), "10.0.0.1:80");

  for (const std::string none : {"", "unix:", "ipv6:", "ipv6:[", "ipv6:[x]:80", "ipv6:%5B"}) {
    EXPECT_EQ(ConnectionNameOfGrpc(none), "") << none;
  }
}

}  // namespace
}  // namespace ringtail
