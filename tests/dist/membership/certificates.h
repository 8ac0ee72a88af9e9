// Certificates for tests, made on the spot.
#ifndef RINGTAIL_TESTS_DIST_MEMBERSHIP_CERTIFICATES_H_
#define RINGTAIL_TESTS_DIST_MEMBERSHIP_CERTIFICATES_H_

#include <string>

#include "dist/membership/security/security.h"
#include "tests/testing/temp_dir.h"

namespace ringtail {

// An authority with a certificate of its own, and files of those that it signs.
class TestAuthority {
 public:
  explicit TestAuthority(const std::string& name);
  ~TestAuthority();
  TestAuthority(const TestAuthority&) = delete;
  TestAuthority& operator=(const TestAuthority&) = delete;

  // Files of a new certificate, its key (mode 0600) and the authority; the certificate is valid for
  // an hour before and `seconds_left` after now.
  SecurityOptions Issue(const std::string& name, long seconds_left = 3600) const;

 private:
  struct Pair;  // certificate and key
  const TempDir folder_;
  Pair* const pair_;
};

}  // namespace ringtail

#endif  // RINGTAIL_TESTS_DIST_MEMBERSHIP_CERTIFICATES_H_
