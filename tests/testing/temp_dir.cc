#include "tests/testing/temp_dir.h"

#include <stdlib.h>

#include <filesystem>

#include "core/check.h"

namespace ringtail {

TempDir::TempDir() {
  path_ = (std::filesystem::temp_directory_path() / "ringtail-test-XXXXXX").string();
  RT_CHECK(mkdtemp(path_.data()) != nullptr, "cannot create a temporary folder");
}

TempDir::~TempDir() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

}  // namespace ringtail
