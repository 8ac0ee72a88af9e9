#include "core/machine/cpu_model.h"

#include <gtest/gtest.h>

#include <fstream>
#include <string>

namespace ringtail {
namespace {

TEST(CpuModelTest, IsTheKernelsName) {
  std::ifstream file("/proc/cpuinfo");
  const std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  ASSERT_FALSE(CpuModel().empty());
  EXPECT_NE(text.find(": " + CpuModel() + "\n"), std::string::npos);
  EXPECT_EQ(CpuModel().find('\n'), std::string::npos);
}

}  // namespace
}  // namespace ringtail
