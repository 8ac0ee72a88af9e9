#include "core/storage/safetensors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/storage/file.h"
#include "core/storage/safetensors_writer.h"
#include "tests/core/safetensors_bytes.h"
#include "tests/testing/temp_dir.h"

namespace ringtail {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Pair;
using Metadata = std::map<std::string, std::string>;

StatusOr<SafetensorsFile> Parse(std::vector<std::byte> bytes) {
  return SafetensorsFile::Parse(std::move(bytes), "made.safetensors");
}

std::vector<std::byte> Written(std::span<const TensorView> tensors, const Metadata& metadata) {
  const TempDir dir;
  const Status status = WriteSafetensors(dir.File("a"), tensors, metadata);
  EXPECT_TRUE(status.ok()) << status.ToString();
  return *ReadFileBytes(dir.File("a"), 1 << 20);
}

// Header and data as PyTorch's usual writer formats them, made with Python's `json` and `struct`.
TEST(SafetensorsTest, ReadsAFileOfAnotherProgram) {
  const std::string json =
      R"({"__metadata__":{"format":"pt"},)"
      R"("bn.num_batches_tracked":{"dtype":"I64","shape":[],"data_offsets":[0,8]},)"
      R"("conv.weight":{"dtype":"F32","shape":[2,3],"data_offsets":[8,32]},)"
      R"("labels":{"dtype":"I32","shape":[2],"data_offsets":[32,40]}} )";
  const std::string data = Packed<int64_t>({7}) + Packed<float>({0.5, 1.5, 2.5, 3.5, 4.5, 5.5}) +
                           Packed<int32_t>({3, -4});
  const StatusOr<SafetensorsFile> file = Parse(SafetensorsBytes(json, data));
  ASSERT_TRUE(file.ok()) << file.status().ToString();
  EXPECT_THAT(file->metadata(), ElementsAre(Pair("format", "pt")));
  EXPECT_FALSE(file->proven_intact());
  EXPECT_EQ(file->entries().size(), 3u);
  EXPECT_EQ(file->entries().at("bn.num_batches_tracked").dtype, Dtype::kI64);
  EXPECT_THAT(file->entries().at("bn.num_batches_tracked").shape, IsEmpty());
  EXPECT_THAT(*file->F32("conv.weight", {2, 3}), ElementsAre(0.5, 1.5, 2.5, 3.5, 4.5, 5.5));
  EXPECT_THAT(*file->I32("labels", {}), ElementsAre(3, -4));
}

// The checksums in the expected header were computed by another implementation.
TEST(SafetensorsTest, WritesTheDocumentedBytes) {
  const float w[] = {1.5F, -2.0F};
  const std::string_view u = "abc";
  const TensorView tensors[] = {{"u", Dtype::kU8, {3}, std::as_bytes(std::span(u))},
                                ViewF32("w", {2}, w)};
  std::string json =
      R"({"__metadata__":{"crc32c.u":"364b3fb7","crc32c.w":"a432a922","data_bytes":"11",)"
      R"("header_crc32c":"7dc89b7a","step":"7"},)"
      R"("u":{"data_offsets":[8,11],"dtype":"U8","shape":[3]},)"
      R"("w":{"data_offsets":[0,8],"dtype":"F32","shape":[2]}})";
  json.resize(4 * 64 - sizeof(uint64_t), ' ');
  EXPECT_EQ(Written(tensors, {{"step", "7"}}),
            SafetensorsBytes(json, Packed<float>({1.5, -2}) + "abc"));
}

TEST(SafetensorsTest, RoundTripKeepsEveryBit) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const float values[] = {0.0F, -0.0F, nan, INFINITY, 1e-45F, -3.25F};
  const int32_t labels[] = {1, 0, INT32_MIN};
  const TensorView tensors[] = {ViewF32("a/\"quoted\"\n\xc3\xa9", {3, 1, 2}, values),
                                ViewI32("labels", {3}, labels), ViewF32("empty", {0, 7}, {}),
                                ViewF32("scalar", {}, std::span(values).first(1))};
  const Metadata metadata = {{"config", "net { name: \"x\" }\n"}, {"", ""}, {"crc", "z"}};
  const StatusOr<SafetensorsFile> file = Parse(Written(tensors, metadata));
  ASSERT_TRUE(file.ok()) << file.status().ToString();
  EXPECT_TRUE(file->proven_intact());
  EXPECT_EQ(file->metadata(), metadata);
  const StatusOr<std::span<const float>> read = file->F32(tensors[0].name, {3, 1, 2});
  ASSERT_TRUE(read.ok());
  EXPECT_TRUE(std::ranges::equal(std::as_bytes(*read), std::as_bytes(std::span(values))));
  EXPECT_THAT(*file->I32("labels", {3}), ElementsAre(1, 0, INT32_MIN));
  EXPECT_THAT(*file->F32("empty", {0, 7}), IsEmpty());
  EXPECT_EQ(file->F32("scalar", {})->size(), 1u);
}

TEST(SafetensorsTest, FileWithoutTensors) {
  const StatusOr<SafetensorsFile> written = Parse(Written({}, {{"a", "b"}}));
  ASSERT_TRUE(written.ok()) << written.status().ToString();
  EXPECT_TRUE(written->proven_intact());
  EXPECT_THAT(written->metadata(), ElementsAre(Pair("a", "b")));
  EXPECT_TRUE(Parse(SafetensorsBytes("{}", "")).ok());
}

TEST(SafetensorsTest, DataAndTensorsAreAlignedWhenWritten) {
  const float w[] = {1, 2, 3};
  const std::vector<int64_t> n = {5};
  for (size_t padding = 0; padding < 70; padding += 5) {
    const TensorView tensors[] = {{"u", Dtype::kU8, {3}, std::as_bytes(std::span("abc", 3))},
                                  ViewF32("w", {3}, w),
                                  {"n", Dtype::kI64, {1}, std::as_bytes(std::span(n))}};
    const std::vector<std::byte> bytes = Written(tensors, {{"p", std::string(padding, 'x')}});
    uint64_t length = 0;
    std::memcpy(&length, bytes.data(), sizeof(length));
    ASSERT_EQ((sizeof(length) + length) % 64, 0u);
    const StatusOr<SafetensorsFile> file = Parse(bytes);
    ASSERT_TRUE(file.ok());
    for (const auto& [name, entry] : file->entries()) {
      ASSERT_EQ(entry.begin % DtypeBytes(entry.dtype), 0u) << name;
    }
  }
}

// Over eight header lengths, every tensor but those of U8 starts at an unaligned address for some.
TEST(SafetensorsTest, TensorsOfOtherProgramsAreMovedToAlignedAddresses) {
  const std::string data = "abc" + Packed<float>({1.5, 2.5}) + Packed<int32_t>({-9});
  std::string json = R"({"u":{"dtype":"U8","shape":[3],"data_offsets":[0,3]},)"
                     R"("w":{"dtype":"F32","shape":[2],"data_offsets":[3,11]},)"
                     R"("i":{"dtype":"I32","shape":[1],"data_offsets":[11,15]}})";
  for (int padding = 0; padding < 8; ++padding, json += ' ') {
    const StatusOr<SafetensorsFile> file = Parse(SafetensorsBytes(json, data));
    ASSERT_TRUE(file.ok()) << file.status().ToString();
    const std::span<const float> w = *file->F32("w", {2});
    const std::span<const int32_t> i = *file->I32("i", {1});
    ASSERT_EQ(reinterpret_cast<uintptr_t>(w.data()) % alignof(float), 0u);
    ASSERT_EQ(reinterpret_cast<uintptr_t>(i.data()) % alignof(int32_t), 0u);
    EXPECT_THAT(w, ElementsAre(1.5, 2.5));
    EXPECT_THAT(i, ElementsAre(-9));
  }
}

TEST(SafetensorsTest, ErrorsNameWhatTheFileHas) {
  const float w[] = {1, 2};
  const TensorView tensors[] = {ViewF32("conv1.weight", {1, 2}, w)};
  const StatusOr<SafetensorsFile> file = Parse(Written(tensors, {}));
  ASSERT_TRUE(file.ok());
  EXPECT_TRUE(file->Has("conv1.weight"));
  EXPECT_FALSE(file->Has("conv1.weigth"));
  const Status missing = file->F32("conv1.weigth", {}).status();
  EXPECT_EQ(missing.code(), StatusCode::kNotFound);
  EXPECT_THAT(missing.message(),
              HasSubstr("'made.safetensors': there is no tensor \"conv1.weigth\"; "
                        "did you mean \"conv1.weight\"?"));
  const Status dtype = file->I32("conv1.weight", {}).status();
  EXPECT_EQ(dtype.code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(dtype.message(), HasSubstr("is F32, but I32 is expected"));
  const Status shape = file->F32("conv1.weight", {2, 1}).status();
  EXPECT_EQ(shape.code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(shape.message(), HasSubstr("[1x2], but [2x1] is expected"));
}

TEST(SafetensorsTest, WriterRefusesInvalidNamesAndTexts) {
  const TempDir dir;
  const float w[] = {1};
  const auto write = [&](std::vector<std::string> names, const Metadata& metadata) {
    std::vector<TensorView> tensors;
    tensors.reserve(names.size());
    for (std::string& name : names) tensors.push_back(ViewF32(std::move(name), {1}, w));
    return WriteSafetensors(dir.File("a"), tensors, metadata);
  };
  const auto expect_refused = [](const Status& status, std::string_view reason) {
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
    EXPECT_THAT(status.message(), HasSubstr(reason));
  };
  expect_refused(write({"a", "a"}, {}), "two tensors have the name \"a\"");
  expect_refused(write({"__metadata__"}, {}), "no tensor can have the name");
  expect_refused(write({std::string(1025, 'n')}, {}), "longer than 1024");
  expect_refused(write({"a"}, {{"crc32c.a", "0"}}), "no metadata can have the name");
  expect_refused(write({"a"}, {{"header_crc32c", "0"}}), "no metadata can have the name");
  expect_refused(write({"a"}, {{"data_bytes", "0"}}), "no metadata can have the name");
  expect_refused(write({"a"}, {{"path", "\xff"}}), "not UTF-8");
  expect_refused(write({"\xff"}, {}), "not UTF-8");
  expect_refused(write({"a"}, {{"long", std::string(17 << 20, 'x')}}), "more than the 16777216");
  EXPECT_FALSE(ReadFileBytes(dir.File("a"), 1 << 20).ok()) << "nothing may have been written";
}

TEST(SafetensorsTest, MetadataCannotForgeTheHeaderChecksum) {
  const Metadata metadata = {{"a", R"("header_crc32c":"00000000")"}, {"header", "crc32c"}};
  const StatusOr<SafetensorsFile> file = Parse(Written({}, metadata));
  ASSERT_TRUE(file.ok()) << file.status().ToString();
  EXPECT_EQ(file->metadata(), metadata);
}

TEST(SafetensorsDeathTest, DataOfAnotherSizeThanTheShapeIsOurBug) {
  const float w[] = {1, 2};
  const TensorView tensors[] = {ViewF32("w", {3}, w)};
  EXPECT_DEATH((void)WriteSafetensors("/nowhere/a", tensors, {}), "size of the shape");
}

}  // namespace
}  // namespace ringtail
