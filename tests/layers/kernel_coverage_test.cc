// Every kernel is tested on every instruction set that the machine can execute, and no kernel
// object defines a symbol that another translation unit could define as well (core/kernel_isa.h).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <set>
#include <sstream>
#include <string>

#include "tests/testing/kernel_objects.h"

namespace ringtail {
namespace {

// Which test compares the kernels of a header with their definition: one that runs on each
// instruction set (TESTS_PER_ISA in tests/CMakeLists.txt), or selects them itself.
const std::map<std::string, std::string> kTestOfKernels = {
    {"core/kernels/add.h", "core/add_test"},
    {"core/kernels/bfloat16.h", "core/bfloat16_test"},
    {"core/kernels/sum_of_squares.h", "core/sum_of_squares_test"},
    {"core/kernels/product_block.h", "core/matrix_product_test"},
    {"core/kernels/product_speed.h", "core/fast_bf16_products_test"},
    {"dist/compression/kernels/bit_planes.h", "dist/compression/codecs/codecs_test"},
    {"dist/compression/kernels/cast.h", "dist/compression/codecs/codecs_test"},
    {"dist/compression/kernels/levels.h", "dist/compression/codecs/codecs_test"},
    {"dist/compression/kernels/magnitudes.h", "dist/compression/codecs/magnitude_test"},
    {"dist/compression/kernels/philox.h", "dist/compression/codecs/codecs_test"},
    {"dist/compression/kernels/sums.h", "dist/compression/codecs/codecs_test"},
    {"layers/kernels/activation.h", "layers/kernels_test"},
    {"layers/kernels/arithmetic.h", "layers/kernels_test"},
    {"layers/kernels/average_pool.h", "layers/kernels_test"},
    {"layers/kernels/batch_norm.h", "layers/kernels_test"},
    {"layers/kernels/bf16/bf16_dot_tiles.h", "layers/linear/bf16_products_test"},
    {"layers/kernels/bf16/bf16_products.h", "layers/convolution/bf16_convolution_test"},
    {"layers/kernels/depthwise.h", "layers/convolution/depthwise_convolution_test"},
    {"layers/kernels/dropout.h", "layers/dropout_test"},
    {"layers/kernels/highway_gate.h", "layers/highway_gate_test"},
    {"layers/kernels/bf16/image_bf16.h", "layers/convolution/image/image_bf16_test"},
    {"layers/kernels/linear/linear.h", "layers/linear/linear_test"},
    {"layers/kernels/linear/linear_bf16.h", "layers/linear/bf16_products_test"},
    {"layers/kernels/linear/linear_few.h", "layers/linear/linear_test"},
    {"layers/kernels/linear/linear_multiply.h", "layers/linear/linear_test"},
    {"layers/kernels/lrn.h", "layers/lrn_test"},
    {"layers/kernels/map_pixels.h", "layers/convolution/pointwise_neighbours_test"},
    {"layers/kernels/max_pool.h", "layers/kernels_test"},
    {"layers/kernels/pointwise.h", "layers/convolution/pointwise/pointwise_convolution_test"},
    {"layers/kernels/bf16/bf16_tiles.h", "layers/convolution/tiles/tile_convolution_test"},
    {"layers/kernels/bf16/pointwise_bf16.h", "layers/convolution/pointwise/pointwise_bf16_test"},
    {"layers/kernels/relayout.h", "layers/kernels_test"},
    {"layers/kernels/winograd/winograd_bf16.h", "layers/convolution/winograd_bf16_test"},
    {"layers/kernels/winograd/winograd_filter.h", "layers/convolution/winograd_test"},
    {"layers/kernels/winograd/winograd_multiply.h", "layers/convolution/winograd_test"},
    {"layers/kernels/winograd/winograd_transform.h", "layers/convolution/winograd_test"},
};

std::string Text(const std::string& path) {
  std::ifstream file(std::filesystem::path(RT_SOURCE_DIR) / path);
  EXPECT_TRUE(file.good()) << path;
  return {std::istreambuf_iterator<char>(file), {}};
}

TEST(KernelCoverageTest, EveryHeaderWithKernelsHasATest) {
  std::set<std::string> headers, listed;
  for (const std::string folder :
       {"core/kernels/", "layers/kernels/", "dist/compression/kernels/"}) {
    const std::filesystem::path root = RT_SOURCE_DIR;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(root / folder)) {
      const std::string path = std::filesystem::relative(entry.path(), root).string();
      if (path.ends_with(".h") && Text(path).find("RT_DECLARE_KERNEL(") != std::string::npos) {
        headers.insert(path);
      }
    }
  }
  for (const auto& [header, test] : kTestOfKernels) listed.insert(header);
  EXPECT_EQ(headers, listed) << "a new header of kernels goes into kTestOfKernels with its test";
}

TEST(KernelCoverageTest, TheirTestsRunOnEveryInstructionSet) {
  std::istringstream list(RT_TESTS_PER_ISA);
  std::set<std::string> per_isa;
  for (std::string test; std::getline(list, test, ',');) per_isa.insert(test);
  for (const auto& [header, test] : kTestOfKernels) {
    if (per_isa.contains(test)) continue;
    EXPECT_THAT(Text("tests/" + test + ".cc"), testing::HasSubstr("SetKernelIsaForTest")) << header;
  }
  for (const std::string& test : per_isa) {
    EXPECT_TRUE(std::filesystem::exists(std::string(RT_SOURCE_DIR) + "/tests/" + test + ".cc"))
        << test << " in tests/CMakeLists.txt";
  }
}

TEST(KernelCoverageTest, ObjectsDefineNothingOutsideTheirIsa) {
  int objects = 0;
  EXPECT_THAT(SymbolsOutsideTheirIsa(RT_BINARY_DIR, "ringtail_kernels", &objects),
              testing::IsEmpty());
  EXPECT_GT(objects, 3 * 10);
}

}  // namespace
}  // namespace ringtail
