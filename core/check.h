// RT_CHECK: for our own bugs, on in every build. Prints where and what, then aborts.
// An error that a user, a file or a peer can cause is a Status (core/status.h), never a check.
#ifndef RINGTAIL_CORE_CHECK_H_
#define RINGTAIL_CORE_CHECK_H_

#include <string_view>

namespace ringtail {

[[noreturn]] void CheckFailed(const char* file, int line, const char* condition,
                              std::string_view message);

#define RT_CHECK(condition, message)                                    \
  do {                                                                  \
    if (!(condition)) [[unlikely]]                                      \
      ::ringtail::CheckFailed(__FILE__, __LINE__, #condition, message); \
  } while (false)

}  // namespace ringtail

#endif  // RINGTAIL_CORE_CHECK_H_
