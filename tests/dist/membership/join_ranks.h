// Worlds that form in tests: ranks as threads, a port that no other process takes, and strangers.
#ifndef RINGTAIL_TESTS_DIST_MEMBERSHIP_JOIN_RANKS_H_
#define RINGTAIL_TESTS_DIST_MEMBERSHIP_JOIN_RANKS_H_

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "dist/membership/join.h"

namespace ringtail {

// A port of the loopback address, bound and not listened at for as long as this lives: the system
// gives it to no other process, and a process that asks for it by number can listen.
class ReservedPort {
 public:
  ReservedPort();
  ~ReservedPort();
  ReservedPort(const ReservedPort&) = delete;
  ReservedPort& operator=(const ReservedPort&) = delete;
  int number() const { return number_; }

 private:
  int socket_, number_ = 0;
};

// Rank `rank` of a world of `world_size` on this machine, with waits that no load exceeds.
JoinOptions TestJoinOptions(int rank, int world_size, int port);

// What JoinWorld said to each, all called at the same time, in the order of `ranks`.
std::vector<StatusOr<JoinedWorld>> JoinAll(const std::vector<JoinOptions>& ranks);
// A world of the first `world_size` ranks, as `change` would have their options.
std::vector<StatusOr<JoinedWorld>> JoinAll(
    int world_size, int port, const std::function<void(JoinOptions*)>& change = [](auto*) {});

// Sends a message from every rank to every other, and checks what arrives.
void ExpectWorldWorks(const std::vector<StatusOr<JoinedWorld>>& ranks);

// A connection of a stranger to a port of this machine; -1 if it is not taken.
int ConnectStranger(int port);
// Bytes that are nothing of ours; `kind` 0 to 3: a zero byte, HTTP/1, a TLS hello, random.
std::string Garbage(int kind);
// Connects `times` times, each with some garbage.
void PourGarbage(int port, int times);

int PortOf(const std::string& address);  // of "127.0.0.1:80"

}  // namespace ringtail

#endif  // RINGTAIL_TESTS_DIST_MEMBERSHIP_JOIN_RANKS_H_
