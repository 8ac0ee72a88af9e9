#include "dist/transport/door/doorkeeper.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "core/logging.h"
#include "core/machine/thread_budget.h"
#include "dist/transport/door/listening_socket.h"
#include "dist/transport/door/opening_bytes.h"

namespace ringtail {
namespace {

// Between looks at the connections that wait at the door.
constexpr int kAcceptsAtOnce = 64;
// Until there may be room inside, or a descriptor.
constexpr std::chrono::milliseconds kPause{10};
constexpr std::chrono::minutes kLongest{1};

OwnedDescriptor OpenReserve() { return OwnedDescriptor(open("/dev/null", O_RDONLY | O_CLOEXEC)); }

// For gRPC, which closes it where a race detector does not see it, and would take whatever has the
// number afterwards for the same file. So the number that accept(2) gave ends here.
int Renumber(OwnedDescriptor* socket) {
  const int other = fcntl(socket->number(), F_DUPFD_CLOEXEC, 0);
  if (other < 0) return socket->Release();  // no descriptor is left
  *socket = OwnedDescriptor();
  return other;
}

// A TLS hello where no TLS is spoken is answered with the beginning of HTTP/2, an empty frame of
// settings, that this is no TLS; otherwise a rank with certificates could not tell why it is turned
// away. What it has sent is taken first, because closing would cut our bytes off else.
void AnswerInPlainText(int socket) {
  constexpr std::array<char, 9> kSettings{0, 0, 0, 4, 0, 0, 0, 0, 0};
  std::array<char, 4096> hello;
  static_cast<void>(recv(socket, hello.data(), hello.size(), MSG_DONTWAIT));
  static_cast<void>(send(socket, kSettings.data(), kSettings.size(), MSG_NOSIGNAL | MSG_DONTWAIT));
}

}  // namespace

StatusOr<std::unique_ptr<Doorkeeper>> Doorkeeper::Listen(const Options& options) {
  RT_ASSIGN_OR_RETURN(ListeningSocket listening, ListenAt(options.address, options.user_timeout));
  OwnedDescriptor wake(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (wake.number() < 0) return ErrnoStatus(errno, options.address);
  return std::unique_ptr<Doorkeeper>(
      new Doorkeeper(options, std::move(listening), std::move(wake)));
}

Doorkeeper::Doorkeeper(const Options& options, ListeningSocket listening, OwnedDescriptor wake)
    : options_(options),
      port_(listening.port),
      listening_(std::move(listening.socket)),
      wake_(std::move(wake)),
      reserve_(OpenReserve()) {}

void Doorkeeper::Open(LetIn let_in) {
  let_in_ = std::move(let_in);
  thread_ = std::thread([this] {
    SetThreadName("rt-door");
    Run();
  });
}

void Doorkeeper::Close() {
  if (thread_.joinable()) {
    closing_ = true;
    eventfd_write(wake_.number(), 1);
    thread_.join();
  }
  listening_ = OwnedDescriptor();
  reserve_ = OwnedDescriptor();
}

void Doorkeeper::Run() {
  while (!closing_) {
    std::vector<pollfd> polled = WhatToPoll();
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(NextDeadline() - Clock::now());
    const auto wait = std::clamp<std::chrono::milliseconds>(left, kPause * 0, kLongest);
    if (poll(polled.data(), polled.size(), static_cast<int>(wait.count())) < 0) continue;
    LookAtVisitors(polled);
    if (polled[1].revents != 0) AcceptSome();
    LetReadyIn();
  }
  visitors_.clear();
}

// The bell, the port, and the visitors in their order. Of those that are ready only the end is of
// interest.
std::vector<pollfd> Doorkeeper::WhatToPoll() const {
  const bool accepts = accept_again_ <= Clock::now();
  std::vector<pollfd> polled{
      {.fd = wake_.number(), .events = POLLIN, .revents = 0},
      {.fd = accepts ? listening_.number() : -1, .events = POLLIN, .revents = 0}};
  for (const Visitor& visitor : visitors_) {
    const bool silent = visitor.state == Visitor::State::kSilent;
    polled.push_back({.fd = visitor.socket.number(),
                      .events = static_cast<int16_t>(silent ? POLLIN | POLLRDHUP : POLLRDHUP),
                      .revents = 0});
  }
  return polled;
}

Doorkeeper::Clock::time_point Doorkeeper::NextDeadline() const {
  const auto now = Clock::now();
  auto next = now + kLongest;
  if (accept_again_ > now) next = std::min(next, accept_again_);
  if (sweep_) next = std::min(next, *sweep_);
  if (!visitors_.empty()) next = std::min(next, visitors_.front().deadline);
  return next;
}

void Doorkeeper::LookAtVisitors(const std::vector<pollfd>& polled) {
  const auto now = Clock::now();
  size_t i = 2;
  for (Visitor& visitor : visitors_) {
    const auto seen = polled[i++].revents;
    if ((seen & POLLIN) != 0) Examine(&visitor);
    if ((seen & (POLLRDHUP | POLLHUP | POLLERR)) != 0) visitor.state = Visitor::State::kGone;
    if (visitor.state != Visitor::State::kGone && visitor.deadline <= now) {
      TurnAway(&visitor, "it does not begin as a rank does within the time for that");
    }
  }
  std::erase_if(visitors_, [](const Visitor& v) { return v.state == Visitor::State::kGone; });
}

void Doorkeeper::AcceptSome() {
  for (int i = 0; i < kAcceptsAtOnce; ++i) {
    const Accepted accepted = AcceptOne();
    if (accepted == Accepted::kNobody) return;
    if (accepted == Accepted::kNoDescriptor && !MakeRoomForDescriptor()) {
      accept_again_ = Clock::now() + kPause;
      return;
    }
    if (visitors_.size() > options_.room_at_door) TurnAwayOldest("there are too many like it");
  }
}

Doorkeeper::Accepted Doorkeeper::AcceptOne() {
  sockaddr_storage peer{};
  OwnedDescriptor socket = AcceptFrom(listening_, &peer);
  if (socket.number() < 0) {
    const bool exhausted =
        errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM;
    // accept4 says so, too, if there is no connection to accept.
    pollfd more{.fd = listening_.number(), .events = POLLIN, .revents = 0};
    if (errno == EAGAIN || poll(&more, 1, 0) <= 0) return Accepted::kNobody;
    return exhausted ? Accepted::kNoDescriptor : Accepted::kOne;  // it has hung up already
  }
  visitors_.push_back({.socket = std::move(socket),
                       .name = ConnectionName(peer),
                       .deadline = Clock::now() + options_.limit});
  Examine(&visitors_.back());
  if (visitors_.back().state == Visitor::State::kGone) visitors_.pop_back();
  return Accepted::kOne;
}

bool Doorkeeper::MakeRoomForDescriptor() {
  constexpr std::string_view kWhy = "this process has no file descriptor left";
  if (!visitors_.empty()) {
    TurnAwayOldest(kWhy);
    return true;
  }
  if (reserve_.number() < 0) reserve_ = OpenReserve();
  if (reserve_.number() < 0) return false;
  reserve_ = OwnedDescriptor();
  const Accepted accepted = AcceptOne();
  if (!visitors_.empty()) TurnAwayOldest(kWhy);
  reserve_ = OpenReserve();
  return accepted != Accepted::kNoDescriptor;
}

// Looks at what it has sent, and leaves it there for gRPC.
void Doorkeeper::Examine(Visitor* visitor) {
  const int socket = visitor->socket.number();
  std::array<char, kOpeningBytes> first;
  const ssize_t bytes = recv(socket, first.data(), first.size(), MSG_PEEK | MSG_DONTWAIT);
  if (bytes < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (bytes <= 0) {
    visitor->state = Visitor::State::kGone;
    return;
  }
  const std::string_view opening(first.data(), static_cast<size_t>(bytes));
  const size_t needed = OpeningBytes(opening, options_.tls);
  if (needed == 0) {
    if (!options_.tls && LooksLikeTls(opening)) AnswerInPlainText(socket);
    return TurnAway(visitor, "it does not begin as a rank does");
  }
  int available = 0;
  ioctl(socket, FIONREAD, &available);
  const bool ready = needed <= static_cast<size_t>(available);
  if (ready) visitor->state = Visitor::State::kReady;
  // Until so much is there poll(2) does not wake us, and gRPC then for each byte.
  const int wanted = ready ? 1 : static_cast<int>(needed);
  setsockopt(socket, SOL_SOCKET, SO_RCVLOWAT, &wanted, sizeof(wanted));
}

void Doorkeeper::LetReadyIn() {
  const auto now = Clock::now();
  if (sweep_ && *sweep_ <= now) sweep_ = unproven_.Sweep(now);
  for (Visitor& visitor : visitors_) {
    if (visitor.state != Visitor::State::kReady) continue;
    if (unproven_.count() >= options_.room_inside) sweep_ = unproven_.Sweep(now);
    if (unproven_.count() >= options_.room_inside) {
      unproven_.ShutDownOldest();
      sweep_ = now + kPause;
      break;
    }
    const auto deadline = visitor.deadline + options_.limit;
    const int descriptor = Renumber(&visitor.socket);
    unproven_.Add(descriptor, visitor.name, deadline);
    sweep_ = std::min(sweep_.value_or(deadline), deadline);
    visitor.state = Visitor::State::kGone;
    let_in_(descriptor);
  }
  std::erase_if(visitors_, [](const Visitor& v) { return v.state == Visitor::State::kGone; });
}

void Doorkeeper::TurnAway(Visitor* visitor, std::string_view why) {
  visitor->state = Visitor::State::kGone;
  if (const auto note = turned_away_.Allow()) {
    LogWarning(fmt::format("turned away a connection from {} at port {}: {}{}", visitor->name,
                           port_, why, *note));
  }
}

// Ranks begin at once, so the connection that has been silent for longest is no rank's.
void Doorkeeper::TurnAwayOldest(std::string_view why) {
  auto oldest = std::find_if(visitors_.begin(), visitors_.end(), [](const Visitor& visitor) {
    return visitor.state == Visitor::State::kSilent;
  });
  if (oldest == visitors_.end()) oldest = visitors_.begin();
  TurnAway(&*oldest, why);
  visitors_.erase(oldest);
}

}  // namespace ringtail
