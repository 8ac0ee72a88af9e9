// Files with false claims: each is refused with one clear error that names the file and the reason.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <vector>

#include "core/storage/safetensors.h"
#include "tests/core/safetensors_bytes.h"

namespace ringtail {
namespace {

using testing::HasSubstr;

const std::string kData(8, 'd');  // after every header below

struct HeaderCase {
  const char* json;
  const char* reason;
};

// Headers in front of eight bytes of data.
const HeaderCase kHeaders[] = {
    // Not JSON, or not an object.
    {"", "does not start with '{'"},
    {" {}", "does not start with '{'"},
    {"[]", "does not start with '{'"},
    {"null", "does not start with '{'"},
    {"\xEF\xBB\xBF{}", "does not start with '{'"},
    {"{", "not JSON"},
    {"{}x", "not JSON"},
    {"{}{}", "not JSON"},
    {"{} \x01", "not JSON"},
    {R"({"a":})", "not JSON"},
    {R"({"a" {}})", "not JSON"},
    {R"({a:1})", "not JSON"},
    {R"({"__metadata__":{},})", "not JSON"},
    {"{\"a\xff\":{}}", "not JSON"},
    {"{\"a\n\":{}}", "not JSON"},
    {R"({"\ud800":{}})", "not JSON"},
    {R"({"a":{"dtype":"U8","shape":[8],"data_offsets":[0,8]})", "not JSON"},
    // Wrong types.
    {R"({"a":1})", "\"a\" is a number, not an object"},
    {R"({"a":null})", "\"a\" is null, not an object"},
    {R"({"a":"U8"})", "\"a\" is a text, not an object"},
    {R"({"a":[]})", "\"a\" is a list, not an object"},
    {R"({"a":true})", "\"a\" is true or false, not an object"},
    {R"({"__metadata__":[]})", "\"__metadata__\" is a list"},
    {R"({"__metadata__":{"k":1}})", "metadata \"k\" is a number, not a text"},
    {R"({"__metadata__":{"k":{}}})", "metadata \"k\" is an object, not a text"},
    {R"({"__metadata__":{"k":null}})", "metadata \"k\" is null, not a text"},
    // Fields that are missing, doubled, unknown or too many.
    {R"({"a":{}})", "\"a\" has no dtype"},
    {R"({"a":{"shape":[8],"data_offsets":[0,8]}})", "\"a\" has no dtype"},
    {R"({"a":{"dtype":"U8","data_offsets":[0,8]}})", "\"a\" has no shape"},
    {R"({"a":{"dtype":"U8","shape":[8]}})", "\"a\" has no data_offsets"},
    {R"({"a":{"dtype":"U8","dtype":"U8","shape":[8],"data_offsets":[0,8]}})", "has dtype twice"},
    {R"({"a":{"dtype":"U8","shape":[8],"shape":[8],"data_offsets":[0,8]}})", "has shape twice"},
    {R"({"a":{"dtype":"U8","shape":[8],"data_offsets":[0,8],"data_offsets":[0,8]}})",
     "has data_offsets twice"},
    {R"({"a":{"dtype":"U8","shape":[8],"data_offsets":[0,8],"more":1}})", "unknown field \"more\""},
    // Names.
    {R"({"a":{"dtype":"U8","shape":[8],"data_offsets":[0,8]},"a":{"dtype":"U8","shape":[0],"data_offsets":[8,8]}})",
     "\"a\" occurs twice"},
    {R"({"a":{"dtype":"U8","shape":[8],"data_offsets":[0,8]},"\u0061":{}})", "\"a\" occurs twice"},
    {R"({"__metadata__":{},"__metadata__":{}})", "\"__metadata__\" occurs twice"},
    {R"({"__metadata__":{"k":"1","k":"2"}})", "metadata \"k\" occurs twice"},
    {R"({"a\u001b[2J":1})", R"("a\u001b[2J" is a number)"},
    // Offsets.
    {R"({})", "end at byte 0 of the data, but it has 8"},
    {R"({"a":{"dtype":"U8","shape":[3],"data_offsets":[0,3]},"b":{"dtype":"U8","shape":[4],"data_offsets":[4,8]}})",
     "hole before tensor \"b\": bytes 3 to 4"},
    {R"({"a":{"dtype":"U8","shape":[8],"data_offsets":[0,8]},"b":{"dtype":"U8","shape":[8],"data_offsets":[0,8]}})",
     "overlaps"},
    {R"({"a":{"dtype":"U8","shape":[5],"data_offsets":[0,5]},"b":{"dtype":"U8","shape":[4],"data_offsets":[4,8]}})",
     "tensor \"b\" overlaps the previous one: it starts at byte 4, not 5"},
    {R"({"a":{"dtype":"U8","shape":[8],"data_offsets":[0,8]},"b":{"dtype":"U8","shape":[0],"data_offsets":[4,4]}})",
     "overlaps"},
    // Wrong checksums, and such that a flipped bit may cause.
    {R"({"__metadata__":{"crc32c.a":"00000000"},"a":{"dtype":"U8","shape":[8],"data_offsets":[0,8]}})",
     "the checksum of tensor \"a\" is \"00000000\""},
    {R"({"__metadata__":{"crc32c.a":""},"a":{"dtype":"U8","shape":[8],"data_offsets":[0,8]}})",
     "the checksum of tensor \"a\""},
    {R"({"__metadata__":{"crc32c.b":"00000000"},"a":{"dtype":"U8","shape":[8],"data_offsets":[0,8]}})",
     "a checksum for tensor \"b\", but no such tensor"},
    {R"({"__metadata__":{"data_bytes":"9"},"a":{"dtype":"U8","shape":[8],"data_offsets":[0,8]}})",
     "data_bytes says \"9\", but there are 8"},
    {R"({"__metadata__":{"data_bytes":"8"},"a":{"dtype":"U8","shape":[8],"data_offsets":[0,8]}})",
     "the header has lost its checksum"},
    {R"({"__metadata__":{"header_crc32c":"00000000"},"a":{"dtype":"U8","shape":[8],"data_offsets":[0,8]}})",
     "the checksum of the header"},
    {R"({"__metadata__":{"header_crc32c": "00000000"},"a":{"dtype":"U8","shape":[8],"data_offsets":[0,8]}})",
     "the header was rewritten"},
    {R"({"a":{"dtype":"U8","shape":[8],"data_offsets":[0,8]},"__metadata__":{"header_crc32c":""}})",
     "the header"},
};

struct TensorCase {
  const char *dtype, *shape, *data_offsets;
  const char* reason;
};

// Headers of one tensor "a", each field as its JSON.
const TensorCase kTensors[] = {
    // Not JSON.
    {R"("U8")", "[8]", "[0,08]", "not JSON"},
    {R"("U8")", "[NaN]", "[0,8]", "not JSON"},
    // Wrong types.
    {"8", "[8]", "[0,8]", "dtype must not be or contain a number"},
    {R"(["U8"])", "[8]", "[0,8]", "dtype must not be or contain a list"},
    {R"("U8")", "8", "[0,8]", "shape must not be or contain a number"},
    {R"("U8")", R"("8")", "[0,8]", "shape must not be or contain a text"},
    {R"("U8")", R"(["8"])", "[0,8]", "shape must not be or contain a text"},
    {R"("U8")", "[[8]]", "[0,8]", "shape must not be or contain a list"},
    {R"("U8")", "[null]", "[0,8]", "shape must not be or contain null"},
    {R"("U8")", "{}", "[0,8]", "shape must not be or contain an object"},
    {R"("U8")", "[8]", R"({"0":8})", "data_offsets must not be or contain"},
    {R"("U8")", "[8]", "[0,[8]]", "data_offsets must not be or contain"},
    // Invalid numbers.
    {R"("U8")", "[-8]", "[0,8]", "a negative number"},
    {R"("U8")", "[-0]", "[0,8]", "a negative number"},
    {R"("U8")", "[8.0]", "[0,8]", "the number 8.0"},
    {R"("U8")", "[8e0]", "[0,8]", "the number 8e0"},
    {R"("U8")", "[18446744073709551624]", "[0,8]", "the number 18446744073709551624"},
    {R"("U8")", "[9223372036854775808]", "[0,8]", "9223372036854775808 is too large"},
    {R"("U8")", "[8]", "[-1,8]", "a negative number"},
    {R"("U8")", "[8]", "[0,8.5]", "the number 8.5"},
    // Products that overflow, some to the right size.
    {R"("F32")", "[4611686018427387904]", "[0,0]", "shape is too large"},
    {R"("I64")", "[2305843009213693953]", "[0,8]", "shape is too large"},
    {R"("U8")", "[4294967296,4294967296,8]", "[0,8]", "shape is too large"},
    {R"("U8")", "[0,4294967296,4294967296]", "[0,0]", "shape is too large"},
    // Too few and too many.
    {R"("U8")", "[8]", "[]", "needs two data_offsets"},
    {R"("U8")", "[8]", "[0]", "needs two data_offsets"},
    {R"("U8")", "[8]", "[0,8,8]", "more than two data_offsets"},
    {R"("U8")", "[1,1,1,1,1,1,1,1,8]", "[0,8]", "more than 8 dimensions"},
    // Dtypes.
    {R"("")", "[8]", "[0,8]", "has dtype \"\", which is none of"},
    {R"("u8")", "[8]", "[0,8]", "has dtype \"u8\", which is none of"},
    {R"("I16")", "[4]", "[0,8]", "has dtype \"I16\", which is none of"},
    {R"("F8_E5M2")", "[8]", "[0,8]", "has dtype \"F8_E5M2\", which is none of"},
    {R"("C64")", "[1]", "[0,8]", "has dtype \"C64\", which is none of"},
    // Offsets.
    {R"("U8")", "[9]", "[0,9]", "0 to 9 are not inside the 8 bytes"},
    {R"("U8")", "[8]", "[8,0]", "8 to 0 are not inside"},
    {R"("U8")", "[0]", "[9,9]", "9 to 9 are not inside"},
    {R"("U8")", "[8]", "[18446744073709551608,18446744073709551615]", "are not inside the 8 bytes"},
    {R"("U8")", "[7]", "[0,8]", "U8 of shape [7] is 7 bytes, but its data_offsets span 8"},
    {R"("F32")", "[8]", "[0,8]", "F32 of shape [8] is 32 bytes"},
    {R"("F32")", "[]", "[0,8]", "is 4 bytes, but its data_offsets span 8"},
    {R"("U8")", "[0]", "[0,8]", "is 0 bytes, but its data_offsets span 8"},
    {R"("U8")", "[7]", "[0,7]", "end at byte 7 of the data, but it has 8"},
    {R"("U8")", "[7]", "[1,8]", "hole before tensor \"a\": bytes 0 to 1"},
};

void ExpectRefused(std::vector<std::byte> bytes, std::string_view reason) {
  const StatusOr<SafetensorsFile> file =
      SafetensorsFile::Parse(std::move(bytes), "evil.safetensors");
  ASSERT_FALSE(file.ok());
  EXPECT_EQ(file.status().code(), StatusCode::kDataLoss);
  EXPECT_THAT(file.status().message(), testing::StartsWith("'evil.safetensors': "));
  EXPECT_THAT(file.status().message(), HasSubstr(reason));
  EXPECT_LT(file.status().message().size(), 600u) << "one sentence, whatever the file says";
  EXPECT_EQ(file.status().message().find_first_of("\n\r\x1b"), std::string::npos);
}

TEST(SafetensorsHostileTest, FalseHeadersAreRefused) {
  for (const HeaderCase& hostile : kHeaders) {
    SCOPED_TRACE(hostile.json);
    ExpectRefused(SafetensorsBytes(hostile.json, kData), hostile.reason);
  }
}

std::string TensorHeader(std::string_view dtype, std::string_view shape,
                         std::string_view data_offsets) {
  return fmt::format(R"({{"a":{{"dtype":{},"shape":{},"data_offsets":{}}}}})", dtype, shape,
                     data_offsets);
}

TEST(SafetensorsHostileTest, FalseTensorsAreRefused) {
  for (const TensorCase& hostile : kTensors) {
    const std::string json = TensorHeader(hostile.dtype, hostile.shape, hostile.data_offsets);
    SCOPED_TRACE(json);
    ExpectRefused(SafetensorsBytes(json, kData), hostile.reason);
  }
}

TEST(SafetensorsHostileTest, TheCorrectHeaderIsRead) {
  const std::string json = TensorHeader(R"("U8")", "[8]", "[0,8]");
  EXPECT_TRUE(SafetensorsFile::Parse(SafetensorsBytes(json, kData), "good").ok());
}

TEST(SafetensorsHostileTest, FalseLengthsAreRefused) {
  ExpectRefused({}, "0 bytes are too few");
  ExpectRefused(std::vector<std::byte>(7), "7 bytes are too few");
  ExpectRefused(BytesWithLength(0, ""), "does not start with '{'");
  ExpectRefused(BytesWithLength(1, ""), "claims 1 bytes, but only 0 follow");
  ExpectRefused(BytesWithLength(3, "{}"), "claims 3 bytes, but only 2 follow");
  ExpectRefused(BytesWithLength(1, "{}"), "not JSON");
  for (const uint64_t length : {(uint64_t{16} << 20) + 1, uint64_t{1} << 32, uint64_t{INT64_MAX},
                                UINT64_MAX - 7, UINT64_MAX}) {
    ExpectRefused(BytesWithLength(length, "{}"), "more than the 16777216 allowed");
  }
  ExpectRefused(BytesWithLength(uint64_t{16} << 20, "{}"), "but only 2 follow");
}

TEST(SafetensorsHostileTest, OtherKindsOfFilesAreRefused) {
  ExpectRefused(BytesWithLength(0x0a1a0a0d474e5089, "png"), "is this a safetensors file?");
  ExpectRefused(BytesWithLength(0x0000000804034b50, "zip"), "is this a safetensors file?");
}

std::string Repeated(std::string_view text, size_t times) {
  std::string all;
  for (size_t i = 0; i < times; ++i) all += text;
  return all;
}

long PeakMemoryKib() {
  rusage usage = {};
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_maxrss;
}

TEST(SafetensorsHostileTest, NestingNeitherOverflowsTheStackNorTakesTime) {
  constexpr size_t kDepth = 1000000;
  ExpectRefused(SafetensorsBytes(R"({"a":)" + std::string(kDepth, '['), ""), "\"a\" is a list");
  ExpectRefused(SafetensorsBytes(Repeated(R"({"a":)", kDepth), ""), "unknown field");
  ExpectRefused(SafetensorsBytes(R"({"a":{"shape":)" + std::string(kDepth, '['), ""),
                "shape must not be or contain a list");
}

TEST(SafetensorsHostileTest, LongTextsAreCutInMessages) {
  const std::string name(1 << 20, 'n');
  ExpectRefused(SafetensorsBytes("{\"" + name + "\":{}}", ""), "is longer than 1024 bytes");
  ExpectRefused(SafetensorsBytes(R"({"a":{"dtype":")" + name + "\"}}", ""), ", which is none of");
  ExpectRefused(SafetensorsBytes(R"({"a":{"shape":[1.)" + std::string(1 << 20, '1') + "]}}", ""),
                "the number 1.111");
  ExpectRefused(SafetensorsBytes("{\"" + name, ""), "not JSON");
}

TEST(SafetensorsHostileTest, MemoryFollowsTheFileNotItsClaims) {
  const long before = PeakMemoryKib();
  // Each claims up to 8 EiB in a few bytes.
  for (int power = 33; power < 63; ++power) {
    const std::string bytes = std::to_string(uint64_t{1} << power);
    ExpectRefused(
        SafetensorsBytes(TensorHeader(R"("U8")", "[" + bytes + "]", "[0," + bytes + "]"), kData),
        "are not inside the 8 bytes");
  }
  // Parsing of a shape of 4 million dimensions ends at the ninth.
  ExpectRefused(SafetensorsBytes(R"({"a":{"shape":[)" + Repeated("1,", 4 << 20) + "1]}}", ""),
                "more than 8 dimensions");
  constexpr long kAllowedKib = 256 << 10;  // copies of the files above, which sanitizers keep
  EXPECT_LT(PeakMemoryKib() - before, kAllowedKib);
}

}  // namespace
}  // namespace ringtail
