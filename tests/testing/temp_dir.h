// A folder under $TMPDIR that is removed with its owner.
#ifndef RINGTAIL_TESTS_TESTING_TEMP_DIR_H_
#define RINGTAIL_TESTS_TESTING_TEMP_DIR_H_

#include <string>

namespace ringtail {

class TempDir {
 public:
  TempDir();
  ~TempDir();
  TempDir(const TempDir&) = delete;
  TempDir& operator=(const TempDir&) = delete;
  const std::string& path() const { return path_; }
  std::string File(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

}  // namespace ringtail

#endif  // RINGTAIL_TESTS_TESTING_TEMP_DIR_H_
