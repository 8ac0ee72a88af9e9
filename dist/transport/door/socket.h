// A socket, closed with its owner. Thread-safety: none. Cost: an int.
#ifndef RINGTAIL_DIST_TRANSPORT_DOOR_SOCKET_H_
#define RINGTAIL_DIST_TRANSPORT_DOOR_SOCKET_H_

#include <unistd.h>

#include <utility>

namespace ringtail {

class Socket {
 public:
  explicit Socket(int number = -1) : number_(number) {}
  Socket(Socket&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  Socket& operator=(Socket&& other) noexcept {
    std::swap(number_, other.number_);
    return *this;
  }
  ~Socket() {
    if (number_ >= 0) close(number_);
  }
  int number() const { return number_; }
  int Release() { return std::exchange(number_, -1); }  // the caller closes it

 private:
  int number_;
};

}  // namespace ringtail

#endif  // RINGTAIL_DIST_TRANSPORT_DOOR_SOCKET_H_
