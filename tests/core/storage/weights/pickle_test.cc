#include "core/storage/weights/pickle.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/core/storage/weights/torch_bytes.h"

namespace ringtail {
namespace {

using testing::HasSubstr;
using Kind = PickleValue::Kind;

StatusOr<Pickle> Parse(const std::string& text) { return Pickle::Parse(BytesOf(text)); }
std::string ErrorOf(const std::string& text) { return Parse(text).status().message(); }

TEST(PickleTest, ValuesOfEachKind) {
  // [None, True, 7, 300, -2, 2**40, 1.5, 'x', b'y', (), (1,), {}]
  const std::string list = std::string("]") + "(N\x88K\x07M\x2c\x01J\xfe\xff\xff\xff" +
                           std::string("\x8a\x06\0\0\0\0\0\x01", 8) +
                           std::string("G\x3f\xf8\0\0\0\0\0\0", 9) + "\x8c\x01x" + "C\x01y" +
                           ")K\x01\x85}e.";
  const auto pickle = Parse(list);
  ASSERT_TRUE(pickle.ok()) << pickle.status().message();
  const PickleValue& root = pickle->root();
  ASSERT_EQ(root.kind, Kind::kList);
  ASSERT_EQ(root.items.size(), 12U);
  const auto item = [&](size_t i) -> const PickleValue& { return (*pickle)[root.items[i]]; };
  EXPECT_EQ(item(0).kind, Kind::kNone);
  EXPECT_EQ(item(1).number, 1);
  EXPECT_EQ(item(2).number, 7);
  EXPECT_EQ(item(3).number, 300);
  EXPECT_EQ(item(4).number, -2);
  EXPECT_EQ(item(5).number, int64_t{1} << 40);
  EXPECT_EQ(item(6).kind, Kind::kFloat);
  EXPECT_EQ(item(7).text, "x");
  EXPECT_EQ(item(8).text, "y");
  EXPECT_EQ(item(9).kind, Kind::kTuple);
  EXPECT_EQ((*pickle)[item(10).items[0]].number, 1);
  EXPECT_EQ(item(11).kind, Kind::kDict);
}

TEST(PickleTest, MemosAndDicts) {
  const auto pickle =
      Parse("}q\x05X" + LittleEndian(uint32_t{1}) + "kq\x01h\x01sh\x05" + "h\x01K\x02s0.");
  ASSERT_TRUE(pickle.ok()) << pickle.status().message();
  const PickleValue* value = pickle->Find(pickle->root(), "k");
  ASSERT_NE(value, nullptr);
  EXPECT_EQ(value->text, "k");
  EXPECT_EQ(pickle->Find(pickle->root(), "l"), nullptr);
}

TEST(PickleTest, ACallIsANode) {
  const auto pickle = Parse(PickleGlobal("os", "system") + "(" + PickleText("x") + "tR.");
  ASSERT_TRUE(pickle.ok()) << pickle.status().message();
  EXPECT_TRUE(pickle->Calls(pickle->root(), "os.system"));
  EXPECT_FALSE(pickle->Calls(pickle->root(), "os.other"));
}

TEST(PickleTest, WhatIsWrongIsNamedWithItsPlace) {
  EXPECT_THAT(ErrorOf(""), HasSubstr("byte 0 of its pickle: the stream ends without STOP"));
  EXPECT_THAT(ErrorOf("NN."), HasSubstr("other than one value"));
  EXPECT_THAT(ErrorOf("(N."), HasSubstr("other than one value"));
  EXPECT_THAT(ErrorOf("N(0."), HasSubstr("the stack is empty"));
  EXPECT_THAT(ErrorOf("s."), HasSubstr("the stack is empty"));
  EXPECT_THAT(ErrorOf("t."), HasSubstr("there is no mark"));
  EXPECT_THAT(ErrorOf("h\x01."), HasSubstr("a memo that was never made"));
  EXPECT_THAT(ErrorOf("NK\x01"
                      "a."),
              HasSubstr("items for no container"));
  EXPECT_THAT(ErrorOf("}(Nu."), HasSubstr("a key without a value"));
  EXPECT_THAT(ErrorOf("J\x01"), HasSubstr("ends in a number"));
  EXPECT_THAT(ErrorOf("X" + LittleEndian(uint32_t{0xffffffff}) + "x."),
              HasSubstr("ends in a text"));
  EXPECT_THAT(ErrorOf("\x8a\x09" + std::string(9, 'x') + "."), HasSubstr("more than 64 bits"));
  EXPECT_THAT(ErrorOf("cmodule"), HasSubstr("a name without an end"));
  EXPECT_THAT(ErrorOf("i"), HasSubstr("opcode 0x69"));  // INST, which Python would call
  EXPECT_THAT(ErrorOf("\x80\x06N."), HasSubstr("an unknown protocol"));
}

// However deep, and even inside itself.
TEST(PickleTest, NestingTakesNoStack) {
  constexpr int kDepth = 300000;
  std::string deep = "N";
  for (int i = 0; i < kDepth; ++i) deep += '\x85';
  EXPECT_TRUE(Parse(deep + ".").ok());
  const auto cycle = Parse(
      "]q\x01h\x01"
      "a.");
  ASSERT_TRUE(cycle.ok());
  EXPECT_EQ(&(*cycle)[cycle->root().items[0]], &cycle->root());
}

TEST(PickleTest, ThereIsALimitToValues) {
  EXPECT_THAT(ErrorOf(std::string(kMaxPickleValues + 1, 'N') + "."), HasSubstr("too many values"));
  EXPECT_THAT(ErrorOf(std::string(kMaxPickleBytes + 1, 'N')), HasSubstr("more than the"));
}

}  // namespace
}  // namespace ringtail
