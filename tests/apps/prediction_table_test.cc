#include "apps/dogs_vs_cats/prediction_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "apps/csv.h"
#include "apps/dogs_vs_cats/image_files.h"
#include "tests/testing/temp_dir.h"

namespace ringtail {
namespace {

using testing::AllOf;
using testing::HasSubstr;

class PredictionTableTest : public testing::Test {
 protected:
  void Open(const std::vector<std::string>& names) {
    for (const std::string& name : names) std::ofstream(folder_.File(name)) << "x";
    dataset_ = OpenImageFiles({folder_.path()}, 1).value();
    logits_.classes = 2;
    logits_.usable.assign(names.size(), true);
    logits_.values.assign(2 * names.size(), 0);
  }
  // Sets the probability of a dog to `dog`.
  void SetDog(int64_t i, double dog) {
    logits_.values[2 * i + 1] = static_cast<float>(std::log(dog / (1 - dog)));
  }

  TempDir folder_;
  std::unique_ptr<Dataset> dataset_;
  ImageLogits logits_;
};

TEST_F(PredictionTableTest, SubmissionIsSortedByNumber) {
  Open({"10.jpg", "9.jpg", "100.jpg"});
  SetDog(0, 0.75);  // 9: natural order
  SetDog(1, 0.25);
  logits_.usable[2] = false;
  EXPECT_EQ(SubmissionCsv(*dataset_, logits_).value(),
            "id,label\n9,0.750000\n10,0.250000\n100,0.500000\n");
}

TEST_F(PredictionTableTest, SubmissionNeedsNumbersThatDiffer) {
  Open({"1.jpg", "1.png"});
  EXPECT_THAT(SubmissionCsv(*dataset_, logits_).status().message(),
              AllOf(HasSubstr("1.jpg' and "), HasSubstr("1.png' have the same number")));
  std::ofstream(folder_.File("cat.jpg")) << "x";
  Open({"1.jpg", "1.png", "cat.jpg"});
  EXPECT_EQ(SubmissionCsv(*dataset_, logits_).status().code(), StatusCode::kInvalidArgument);
  logits_.classes = 3;
  EXPECT_THAT(SubmissionCsv(*dataset_, logits_).status().message(), HasSubstr("two classes"));
}

TEST_F(PredictionTableTest, TableAndCsv) {
  Open({"a,b.jpg", "c.jpg"});
  SetDog(0, 0.9);
  logits_.usable[1] = false;
  const std::string key = dataset_->samples()[0].key;
  const std::string table = PredictionTable(*dataset_, logits_, {"cat", "dog"});
  EXPECT_THAT(table, HasSubstr("dog       90.00 %\n"));
  EXPECT_THAT(table, testing::EndsWith("  -\n"));
  EXPECT_EQ(PredictionCsv(*dataset_, logits_, {"cat", "dog"}),
            "key,label,probability\n\"" + key + "\",dog,0.900000\n");
}

TEST_F(PredictionTableTest, JsonHasEveryClass) {
  Open({"a \"b\".jpg", "c.jpg"});
  SetDog(0, 0.75);
  logits_.usable[1] = false;
  const auto list = nlohmann::json::parse(PredictionJson(*dataset_, logits_, {"cat", "dog"}));
  ASSERT_EQ(list.size(), 2U);
  EXPECT_EQ(list[0]["file"], dataset_->samples()[0].key);
  EXPECT_EQ(list[0]["label"], "dog");
  EXPECT_NEAR(list[0]["probability"].get<double>(), 0.75, 1e-6);
  EXPECT_NEAR(list[0]["probabilities"]["cat"].get<double>(), 0.25, 1e-6);
  EXPECT_EQ(list[0]["probabilities"]["dog"], list[0]["probability"]);
  EXPECT_EQ(list[1]["file"], dataset_->samples()[1].key);
  EXPECT_TRUE(list[1]["label"].is_null());
}

TEST(ImageFilesTest, AMissingPathIsNamed) {
  const TempDir folder;
  EXPECT_THAT(OpenImageFiles({folder.File("no.jpg")}, 1).status().message(), HasSubstr("no.jpg"));
  std::filesystem::create_directories(folder.File("other"));
  const Status none = OpenImageFiles({folder.path(), folder.File("other")}, 1).status();
  EXPECT_EQ(none.code(), StatusCode::kNotFound);
  EXPECT_THAT(none.message(), HasSubstr("'" + folder.path() + "', '" + folder.File("other") + "'"));
}

TEST(CsvTest, QuotesOnlyWhereNecessary) {
  EXPECT_EQ(CsvField("cat.1.jpg"), "cat.1.jpg");
  EXPECT_EQ(CsvField("a \"b\", c"), "\"a \"\"b\"\", c\"");
}

}  // namespace
}  // namespace ringtail
