#include "core/status.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <utility>

namespace ringtail {
namespace {

TEST(Status, DefaultIsOk) {
  const Status status;
  EXPECT_TRUE(status.ok());
  EXPECT_EQ(status.code(), StatusCode::kOk);
  EXPECT_EQ(status.message(), "");
  EXPECT_EQ(status.ToString(), "OK");
}

TEST(Status, HasCodeAndMessage) {
  const Status status = DataLoss("cat.7.jpg: truncated");
  EXPECT_FALSE(status.ok());
  EXPECT_EQ(status.code(), StatusCode::kDataLoss);
  EXPECT_EQ(status.ToString(), "DataLoss: cat.7.jpg: truncated");
}

TEST(Status, EachFactoryHasItsCode) {
  EXPECT_EQ(InvalidArgument("").code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(NotFound("").code(), StatusCode::kNotFound);
  EXPECT_EQ(AlreadyExists("").code(), StatusCode::kAlreadyExists);
  EXPECT_EQ(FailedPrecondition("").code(), StatusCode::kFailedPrecondition);
  EXPECT_EQ(ResourceExhausted("").code(), StatusCode::kResourceExhausted);
  EXPECT_EQ(DataLoss("").code(), StatusCode::kDataLoss);
  EXPECT_EQ(Internal("").code(), StatusCode::kInternal);
  EXPECT_EQ(Cancelled("").code(), StatusCode::kCancelled);
}

TEST(Status, CopiesAreIndependent) {
  Status first = NotFound("a");
  const Status second = first;
  first = Internal("b");
  EXPECT_EQ(second.ToString(), "NotFound: a");
  const Status& itself = first;
  first = itself;
  EXPECT_EQ(first.ToString(), "Internal: b");
  const Status moved = std::move(first);
  EXPECT_EQ(moved.ToString(), "Internal: b");
}

TEST(Status, AnnotateAddsTheContextInFront) {
  EXPECT_EQ(NotFound("x").Annotate("reading").Annotate("resuming").ToString(),
            "NotFound: resuming: reading: x");
  EXPECT_TRUE(OkStatus().Annotate("reading").ok());
}

TEST(Status, ErrnoBecomesACode) {
  EXPECT_EQ(ErrnoStatus(ENOENT, "open 'x'").ToString(),
            "NotFound: open 'x': No such file or directory");
  EXPECT_EQ(ErrnoStatus(EACCES, "").code(), StatusCode::kPermissionDenied);
  EXPECT_EQ(ErrnoStatus(ENOSPC, "").code(), StatusCode::kResourceExhausted);
  EXPECT_EQ(ErrnoStatus(EIO, "").code(), StatusCode::kDataLoss);
  EXPECT_EQ(ErrnoStatus(EISDIR, "").code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(ErrnoStatus(EEXIST, "").code(), StatusCode::kAlreadyExists);
  EXPECT_EQ(ErrnoStatus(ECHILD, "").code(), StatusCode::kInternal);
}

TEST(StatusDeathTest, AnErrorNeedsAnErrorCode) {
  EXPECT_DEATH((void)Status(StatusCode::kOk, "fine"), "an error needs an error code");
  EXPECT_DEATH((void)StatusOr<int>{OkStatus()}, "needs an error");
}

TEST(StatusOr, HoldsAValueOrAnError) {
  const StatusOr<std::string> value = std::string("v");
  ASSERT_TRUE(value.ok());
  EXPECT_EQ(*value, "v");
  EXPECT_EQ(value->size(), 1u);
  const StatusOr<std::string> error = NotFound("n");
  EXPECT_FALSE(error.ok());
  EXPECT_EQ(error.status().ToString(), "NotFound: n");
}

TEST(StatusOrDeathTest, TakingTheValueOfAnErrorSaysWhichError) {
  const StatusOr<int> error = NotFound("no such layer");
  EXPECT_DEATH((void)error.value(), "no such layer");
}

TEST(StatusOr, TakesMoveOnlyValues) {
  StatusOr<std::unique_ptr<int>> made = std::make_unique<int>(3);
  const std::unique_ptr<int> taken = *std::move(made);
  EXPECT_EQ(*taken, 3);
}

Status FailIf(bool fail, int* reached) {
  RT_RETURN_IF_ERROR(fail ? Internal("first") : OkStatus());
  ++*reached;
  return {};
}

StatusOr<int> Twice(const StatusOr<int>& x) {
  RT_ASSIGN_OR_RETURN(const int value, x);
  return 2 * value;
}

TEST(Macros, ReturnTheFirstError) {
  int reached = 0;
  EXPECT_EQ(FailIf(true, &reached).message(), "first");
  EXPECT_EQ(reached, 0);
  EXPECT_TRUE(FailIf(false, &reached).ok());
  EXPECT_EQ(reached, 1);
  EXPECT_EQ(*Twice(4), 8);
  EXPECT_EQ(Twice(NotFound("n")).status().message(), "n");
}

}  // namespace
}  // namespace ringtail
