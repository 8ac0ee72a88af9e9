// State dicts of PyTorch: read as they are, and refused where they claim what is not there.
#include "core/storage/weights/torch_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <limits>
#include <vector>

#include "core/storage/file.h"
#include "core/storage/weights/weights_file.h"
#include "tests/core/storage/weights/torch_bytes.h"

namespace ringtail {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::string Floats(const std::vector<float>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float)};
}

std::vector<float> Values(const StridedTensor& tensor) {
  std::vector<float> values(NumElements(tensor.shape));
  EXPECT_TRUE(ToFloats(tensor, values).ok());
  return values;
}

std::string ErrorOf(const std::string& bytes) {
  return ParseTorch(BytesOf(bytes)).status().message();
}

const std::string kStorage = Floats({1, 2, 3, 4, 5, 6});

// As ErrorOf, of a file with one tensor "w".
std::string ErrorOfTensor(const std::string& tensor) {
  return ErrorOf(TorchFile(PickleDict({{"w", tensor}}), {{"0", kStorage}}));
}

TEST(TorchFileTest, TensorsAreViewsOfTheirStorages) {
  const std::string file =
      TorchFile(PickleDict({{"a", PickleTensor("FloatStorage", "0", 0, {2, 3}, {3, 1})},
                            {"transposed", PickleTensor("FloatStorage", "0", 0, {3, 2}, {1, 3})},
                            {"part", PickleTensor("FloatStorage", "0", 4, {2}, {1})},
                            {"scalar", PickleTensor("FloatStorage", "0", 2, {}, {})},
                            {"empty", PickleTensor("FloatStorage", "0", 6, {0, 5}, {5, 1})}}),
                {{"0", kStorage}});
  const auto state = ParseTorch(BytesOf(file));
  ASSERT_TRUE(state.ok()) << state.status().message();
  EXPECT_EQ(state->taken_from, "");
  EXPECT_EQ(state->tensors.at("a").shape, (Shape{2, 3}));
  EXPECT_THAT(Values(state->tensors.at("a")), ElementsAre(1, 2, 3, 4, 5, 6));
  EXPECT_THAT(Values(state->tensors.at("transposed")), ElementsAre(1, 4, 2, 5, 3, 6));
  EXPECT_THAT(Values(state->tensors.at("part")), ElementsAre(5, 6));
  EXPECT_THAT(Values(state->tensors.at("scalar")), ElementsAre(3));
  EXPECT_THAT(Values(state->tensors.at("empty")), ElementsAre());
}

TEST(TorchFileTest, ElementsOfOtherTypesBecomeFloats) {
  const auto bytes_of = [](const auto& values) {
    return std::string(reinterpret_cast<const char*>(values.data()),
                       values.size() * sizeof(values[0]));
  };
  // 1, -2, the smallest subnormal, the largest number, infinity.
  const std::string half = bytes_of(std::vector<uint16_t>{0x3c00, 0xc000, 1, 0x7bff, 0x7c00});
  const std::string bfloat = bytes_of(std::vector<uint16_t>{0x3f80, 0xc000});
  const std::string file =
      TorchFile(PickleDict({{"f16", PickleTensor("HalfStorage", "0", 0, {5}, {1})},
                            {"bf16", PickleTensor("BFloat16Storage", "1", 0, {2}, {1})},
                            {"f64", PickleTensor("DoubleStorage", "2", 0, {2}, {1})},
                            {"i64", PickleTensor("LongStorage", "2", 0, {}, {})}}),
                {{"0", half}, {"1", bfloat}, {"2", bytes_of(std::vector<double>{0.1, -1e300})}});
  const auto state = ParseTorch(BytesOf(file));
  ASSERT_TRUE(state.ok()) << state.status().message();
  EXPECT_THAT(Values(state->tensors.at("f16")),
              ElementsAre(1, -2, 0x1p-24F, 65504, std::numeric_limits<float>::infinity()));
  EXPECT_THAT(Values(state->tensors.at("bf16")), ElementsAre(1, -2));
  EXPECT_THAT(Values(state->tensors.at("f64")),
              ElementsAre(0.1F, -std::numeric_limits<float>::infinity()));
  float number = 0;
  EXPECT_THAT(ToFloats(state->tensors.at("i64"), std::span(&number, 1)).message(),
              HasSubstr("its elements are I64"));
}

// A checkpoint of a training program: the averaged weights are preferred.
TEST(TorchFileTest, StateDictsAreFoundInCheckpoints) {
  const std::string plain = PickleDict({{"w", PickleTensor("FloatStorage", "0", 0, {1}, {1})}});
  const std::string averaged = PickleDict({{"w", PickleTensor("FloatStorage", "0", 1, {1}, {1})}});
  const std::string namespace_of_arguments = PickleGlobal("argparse", "Namespace") + ")\x81}" +
                                             PickleText("lr") +
                                             std::string("G\0\0\0\0\0\0\0\0sb", 11);
  const std::string file = TorchFile(PickleDict({{"epoch", PickleInt(3)},
                                                 {"args", namespace_of_arguments},
                                                 {"state_dict", plain},
                                                 {"state_dict_ema", averaged}}),
                                     {{"0", kStorage}});
  const auto state = ParseTorch(BytesOf(file));
  ASSERT_TRUE(state.ok()) << state.status().message();
  EXPECT_EQ(state->taken_from, "state_dict_ema");
  EXPECT_THAT(Values(state->tensors.at("w")), ElementsAre(2));
}

TEST(TorchFileTest, AParameterIsATensor) {
  const std::string parameter = PickleGlobal("torch._utils", "_rebuild_parameter") + "(" +
                                PickleTensor("FloatStorage", "0", 3, {2}, {1}) + "\x88" +
                                PickleGlobal("collections", "OrderedDict") + ")RtR";
  const std::string file = TorchFile(PickleDict({{"w", parameter}}), {{"0", kStorage}});
  EXPECT_THAT(Values(ParseTorch(BytesOf(file)).value().tensors.at("w")), ElementsAre(4, 5));
}

// Written by torch.save of PyTorch 1.13.
TEST(TorchFileTest, AFileOfPyTorchIsRead) {
  const std::string path =
      RT_SOURCE_DIR "/tests/core/storage/weights/corpus/torch_file_fuzz/pytorch";
  const auto file = WeightsFile::Read(path);
  ASSERT_TRUE(file.ok()) << file.status().message();
  EXPECT_THAT(Values(file->tensors().at("fc.weight")), ElementsAre(1, 2, 3, 4, 5, 6));
  EXPECT_THAT(Values(file->tensors().at("fc.bias")), ElementsAre(-0.5F, 0.25F));
  EXPECT_EQ(file->tensors().at("bn.num_batches_tracked").dtype, Dtype::kI64);
  EXPECT_THAT(Values(file->tensors().at("channels_last")), ElementsAre(0, 1, 2, 3, 4, 5, 6, 7));
}

TEST(TorchFileTest, FalseClaimsAreRefused) {
  const auto tensor = [](int32_t offset, const std::vector<int32_t>& shape,
                         const std::vector<int32_t>& strides) {
    return PickleTensor("FloatStorage", "0", offset, shape, strides);
  };
  EXPECT_THAT(ErrorOfTensor(tensor(0, {7}, {1})), HasSubstr("outside its storage"));
  EXPECT_THAT(ErrorOfTensor(tensor(1, {6}, {1})), HasSubstr("outside its storage"));
  EXPECT_THAT(ErrorOfTensor(tensor(7, {0}, {1})), HasSubstr("outside its storage"));
  EXPECT_THAT(ErrorOfTensor(tensor(-1, {1}, {1})), HasSubstr("outside its storage"));
  EXPECT_THAT(ErrorOfTensor(tensor(0, {2, 3}, {1})), HasSubstr("outside its storage"));
  EXPECT_THAT(ErrorOfTensor(tensor(0, {-2}, {1})), HasSubstr("other than counts"));
  EXPECT_THAT(ErrorOfTensor(tensor(5, {2}, {-1})), HasSubstr("other than counts"));
  constexpr int32_t kMost = std::numeric_limits<int32_t>::max();
  EXPECT_THAT(ErrorOfTensor(tensor(0, {kMost, kMost, kMost}, {kMost, kMost, kMost})),
              HasSubstr("outside its storage"));
  EXPECT_THAT(ErrorOfTensor(tensor(0, std::vector<int32_t>(9, 1), std::vector<int32_t>(9, 1))),
              HasSubstr("no tuple of at most 8"));
  EXPECT_THAT(ErrorOfTensor(PickleTensor("FloatStorage", "1", 0, {1}, {1})),
              HasSubstr("missing from the archive"));
  EXPECT_THAT(ErrorOfTensor(PickleTensor("ComplexFloatStorage", "0", 0, {1}, {1})),
              HasSubstr("torch.ComplexFloatStorage"));
  EXPECT_THAT(ErrorOf(TorchFile(PickleInt(3), {})), HasSubstr("it has no tensors"));
  EXPECT_THAT(ErrorOf(TorchFile(PickleGlobal("m", "Net") + ")\x81", {})),
              HasSubstr("a whole module"));
  EXPECT_THAT(ErrorOf(ZipOf({{"net/other", ""}})), HasSubstr("without data.pkl"));
  EXPECT_THAT(ErrorOf(ZipOf({{"net/data.pkl", "\x80\x02}."}, {"net/byteorder", "big"}})),
              HasSubstr("big-endian"));
  EXPECT_THAT(ErrorOf("\x80\x02\x8a\x0al\xfc\x9c"), HasSubstr("before PyTorch 1.6"));
}

// Nothing that a pickle may ask for is done.
TEST(TorchFileTest, CallsAreNotMade) {
  const std::string call = PickleGlobal("os", "system") + "(" + PickleText("touch pickled") + "tR";
  const std::string file =
      TorchFile(PickleDict({{"evil", call}, {"w", PickleTensor("FloatStorage", "0", 0, {1}, {1})}}),
                {{"0", kStorage}});
  const auto state = ParseTorch(BytesOf(file));
  ASSERT_TRUE(state.ok()) << state.status().message();
  EXPECT_EQ(state->tensors.size(), 1U);
  EXPECT_FALSE(std::filesystem::exists("pickled"));
}

TEST(TorchFileTest, EveryCutIsRefused) {
  const std::string file = TorchFile(
      PickleDict({{"w", PickleTensor("FloatStorage", "0", 0, {6}, {1})}}), {{"0", kStorage}});
  ASSERT_TRUE(ParseTorch(BytesOf(file)).ok());
  for (size_t size = 4; size < file.size(); ++size) {
    EXPECT_FALSE(ParseTorch(BytesOf(file).first(size)).ok()) << size;
  }
}

// Any other byte anywhere is read or refused; sanitizers watch what is touched.
TEST(TorchFileTest, EveryDamagedByteIsReadOrRefused) {
  const std::string file = TorchFile(
      PickleDict({{"w", PickleTensor("FloatStorage", "0", 0, {2, 3}, {3, 1})}}), {{"0", kStorage}});
  int read = 0;
  for (size_t at = 0; at < file.size(); ++at) {
    for (const char damage : {'\x01', '\x80', '\xff'}) {
      std::string damaged = file;
      damaged[at] = static_cast<char>(damaged[at] ^ damage);
      const auto state = ParseTorch(BytesOf(damaged));
      if (!state.ok()) continue;
      for (const auto& [name, tensor] : state->tensors) {
        ASSERT_TRUE(IsInside(tensor));
        if (NumElements(tensor.shape) < 100) Values(tensor);
      }
      ++read;
    }
  }
  EXPECT_GT(read, 0);  // the floats themselves, times, checksums
}

}  // namespace
}  // namespace ringtail
