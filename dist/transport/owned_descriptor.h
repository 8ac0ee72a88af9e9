// OwnedDescriptor: a number of the operating system for an open file or socket, closed with its
// owner. (core/storage/file_descriptor.h reads and writes files by path.) Thread-safety: none.
// Cost: an int.
#ifndef RINGTAIL_DIST_TRANSPORT_OWNED_DESCRIPTOR_H_
#define RINGTAIL_DIST_TRANSPORT_OWNED_DESCRIPTOR_H_

#include <unistd.h>

#include <utility>

namespace ringtail {

class OwnedDescriptor {
 public:
  explicit OwnedDescriptor(int number = -1) : number_(number) {}
  OwnedDescriptor(OwnedDescriptor&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  OwnedDescriptor& operator=(OwnedDescriptor&& other) noexcept {
    std::swap(number_, other.number_);
    return *this;
  }
  ~OwnedDescriptor() {
    if (number_ >= 0) close(number_);
  }
  int number() const { return number_; }
  int Release() { return std::exchange(number_, -1); }  // the caller closes it

 private:
  int number_;
};

}  // namespace ringtail

#endif  // RINGTAIL_DIST_TRANSPORT_OWNED_DESCRIPTOR_H_
