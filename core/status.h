// Status: the outcome of an operation that the world can make fail (files, configs, images, peers).
//
// Our own bugs are not a Status: RT_CHECK ends the process. No exception leaves a folder.
// A message says what happened, where, and what to do; each caller may add context:
//   RT_RETURN_IF_ERROR(ReadFile(path, &bytes).Annotate("reading the packed data set"));
// Thread-safety: a value type. Cost: OK is one null pointer.
#ifndef RINGTAIL_CORE_STATUS_H_
#define RINGTAIL_CORE_STATUS_H_

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "core/check.h"

namespace ringtail {

// Those of gRPC's canonical codes that Ringtail uses, with the same numbers.
enum class StatusCode {
  kOk = 0,
  kCancelled = 1,           // the user asked to stop
  kInvalidArgument = 3,     // a config, flag or file whose content is wrong
  kDeadlineExceeded = 4,    // a wait timed out
  kNotFound = 5,            // no such file, layer, parameter
  kAlreadyExists = 6,       // another run holds the directory
  kPermissionDenied = 7,    // refused by the operating system
  kResourceExhausted = 8,   // disk full, limit exceeded
  kFailedPrecondition = 9,  // valid in itself, but not in this state
  kUnimplemented = 12,
  kInternal = 13,     // a library failed unexpectedly
  kUnavailable = 14,  // a peer is gone
  kDataLoss = 15,     // corrupt or truncated data
};

std::string_view StatusCodeName(StatusCode code);  // "InvalidArgument"

class [[nodiscard]] Status {
 public:
  Status() = default;  // OK
  Status(StatusCode code, std::string message);
  Status(const Status& other);
  Status& operator=(const Status& other);
  Status(Status&&) noexcept = default;
  Status& operator=(Status&&) noexcept = default;

  bool ok() const { return rep_ == nullptr; }
  StatusCode code() const { return rep_ ? rep_->code : StatusCode::kOk; }
  const std::string& message() const;
  std::string ToString() const;  // "DataLoss: cat.7.jpg: ..."

  // The same error with context from a caller: "<context>: <message>". OK stays OK.
  Status Annotate(std::string_view context) const;

 private:
  struct Rep {
    StatusCode code;
    std::string message;
  };
  std::unique_ptr<Rep> rep_;
};

inline Status OkStatus() { return {}; }
Status InvalidArgument(std::string message);
Status NotFound(std::string message);
Status AlreadyExists(std::string message);
Status FailedPrecondition(std::string message);
Status ResourceExhausted(std::string message);
Status DataLoss(std::string message);
Status Internal(std::string message);
Status Cancelled(std::string message);
// The error of a failed system call: code from `error_number`, message "<what>: <strerror>".
Status ErrnoStatus(int error_number, std::string_view what);

// A value, or the error that explains its absence.
template <typename T>
class [[nodiscard]] StatusOr {
 public:
  StatusOr(Status status) : status_(std::move(status)) {  // NOLINT(google-explicit-constructor)
    RT_CHECK(!status_.ok(), "a StatusOr without a value needs an error");
  }
  StatusOr(T value) : value_(std::move(value)) {}  // NOLINT(google-explicit-constructor)

  bool ok() const { return status_.ok(); }
  const Status& status() const { return status_; }
  T& value() & {
    RT_CHECK(ok(), status_.ToString());
    return *value_;
  }
  const T& value() const& {
    RT_CHECK(ok(), status_.ToString());
    return *value_;
  }
  T&& value() && {
    RT_CHECK(ok(), status_.ToString());
    return *std::move(value_);
  }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T&& operator*() && { return std::move(*this).value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }

 private:
  Status status_;
  std::optional<T> value_;
};

#define RT_RETURN_IF_ERROR(expression)            \
  do {                                            \
    ::ringtail::Status rt_status_ = (expression); \
    if (!rt_status_.ok()) return rt_status_;      \
  } while (false)

// RT_ASSIGN_OR_RETURN(const Dataset data, Dataset::Open(path));
// NOLINTBEGIN(bugprone-macro-parentheses): a declaration and a name cannot stand in parentheses
#define RT_ASSIGN_OR_RETURN(declaration, expression) \
  RT_ASSIGN_OR_RETURN_IMPL_(RT_CONCAT_(rt_or_, __LINE__), declaration, expression)
#define RT_ASSIGN_OR_RETURN_IMPL_(temporary, declaration, expression) \
  auto temporary = (expression);                                      \
  if (!temporary.ok()) return temporary.status();                     \
  declaration = *std::move(temporary)
#define RT_CONCAT_(a, b) RT_CONCAT_IMPL_(a, b)
#define RT_CONCAT_IMPL_(a, b) a##b
// NOLINTEND(bugprone-macro-parentheses)

}  // namespace ringtail

#endif  // RINGTAIL_CORE_STATUS_H_
