// Layouts are detected, other files are left out and counted, and reading survives changes of
// files.
#include "data/dataset.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>

#include "tests/data/image_folder.h"
#include "tests/testing/temp_dir.h"

namespace ringtail {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

void PutKaggleImages(const std::string& folder) {
  for (const char* name : {"cat.0.jpg", "cat.2.jpg", "cat.10.jpg", "dog.1.jpg", "Dog.3.JPEG"}) {
    PutFile(folder + "/" + name);
  }
}

TEST(KaggleTest, KeysLabelsAndOrder) {
  TempDir dir;
  PutKaggleImages(dir.path());
  const auto dataset = OpenOrDie(dir.path());
  EXPECT_EQ(KeysAndLabels(*dataset),
            "Dog.3.JPEG=1 cat.0.jpg=0 cat.2.jpg=0 cat.10.jpg=0 dog.1.jpg=1");
  EXPECT_THAT(dataset->class_names(), ElementsAre("cat", "dog"));
  EXPECT_EQ(dataset->Describe(), "Kaggle layout in " + dir.path() + ": 3 cat, 2 dog");
}

TEST(KaggleTest, KeysDoNotDependOnTheGivenFolder) {
  TempDir dir;
  PutKaggleImages(dir.File("train"));
  PutFile(dir.File("test1/1.jpg"));
  EXPECT_EQ(KeysAndLabels(*OpenOrDie(dir.path())), KeysAndLabels(*OpenOrDie(dir.File("train"))));
}

TEST(KaggleTest, TrainInsideTrainIsFound) {
  TempDir dir;
  PutKaggleImages(dir.File("train/train"));
  EXPECT_EQ(OpenOrDie(dir.path())->samples().size(), 5u);
}

TEST(KaggleTest, TestImagesHaveNoLabelAndAreInNumericOrder) {
  TempDir dir;
  for (const char* name : {"test1/10.jpg", "test1/9.jpg", "test1/1.jpg"}) PutFile(dir.File(name));
  const auto dataset = OpenOrDie(dir.path());
  EXPECT_EQ(KeysAndLabels(*dataset), "1.jpg=-1 9.jpg=-1 10.jpg=-1");
  EXPECT_EQ(dataset->Describe(),
            "unlabelled images in " + dir.path() + "/test1: 3 without a label");
}

TEST(KaggleTest, ThousandsAreGrouped) {
  TempDir dir;
  for (int i = 0; i < 1234; ++i) PutFile(dir.File("cat." + std::to_string(i) + ".jpg"));
  PutFile(dir.File("dog.0.jpg"));
  EXPECT_THAT(OpenOrDie(dir.path())->Describe(), HasSubstr(": 1,234 cat, 1 dog"));
}

TEST(ClassFoldersTest, CatAndDogInAnyCase) {
  TempDir dir;
  for (const char* name : {"DOG/1.jpg", "Cats/1.jpg", "Cats/deep/er/2.png"}) {
    PutFile(dir.File(name));
  }
  const auto dataset = OpenOrDie(dir.path());
  EXPECT_EQ(KeysAndLabels(*dataset), "Cats/1.jpg=0 Cats/deep/er/2.png=0 DOG/1.jpg=1");
  EXPECT_THAT(dataset->class_names(), ElementsAre("cat", "dog"));
}

TEST(ClassFoldersTest, ClassesByNameInNaturalOrder) {
  TempDir dir;
  for (const char* name : {"class10/a.jpg", "class2/a.jpg", "ant/a.jpg", "empty/notes.txt"}) {
    PutFile(dir.File(name));
  }
  EXPECT_THAT(OpenOrDie(dir.path())->class_names(), ElementsAre("ant", "class2", "class10"));
}

TEST(ClassFoldersTest, TrainBesideValidationMarksTheParts) {
  TempDir dir;
  for (const char* name : {"train/cats/1.jpg", "train/dogs/1.jpg", "validation/dogs/2.jpg"}) {
    PutFile(dir.File(name));
  }
  PutFile(dir.File("test/3.jpg"));
  const auto dataset = OpenOrDie(dir.path());
  EXPECT_EQ(KeysAndLabels(*dataset),
            "train/cats/1.jpg=0 train/dogs/1.jpg=1 validation/dogs/2.jpg=1");
  EXPECT_EQ(dataset->samples()[0].part, SplitPart::kTrain);
  EXPECT_EQ(dataset->samples()[2].part, SplitPart::kValidation);
  EXPECT_THAT(dataset->Describe(), HasSubstr("1 cat, 2 dog; split by folders: 2 train, 1 validat"));
}

TEST(ClassFoldersTest, FoldersNamedTestAreNoClassByDefault) {
  TempDir dir;
  for (const char* name : {"Cat/1.jpg", "Dog/1.jpg", "test/1.jpg"}) PutFile(dir.File(name));
  EXPECT_EQ(OpenOrDie(dir.path())->class_names().size(), 2u);
  EXPECT_EQ(OpenOrDie(dir.path(), DataConfig::CLASS_FOLDERS)->class_names().size(), 3u);
}

TEST(ClassFoldersTest, ALinkToAParentFolderEnds) {
  TempDir dir;
  PutFile(dir.File("Cat/1.jpg"));
  PutFile(dir.File("Dog/1.jpg"));
  std::filesystem::create_directory_symlink("..", dir.File("Cat/up"));
  std::filesystem::create_directory_symlink(".", dir.File("Dog/self"));
  const auto dataset = OpenOrDie(dir.path());
  std::vector<std::string> dogs;
  for (const Sample& sample : dataset->samples()) {
    if (sample.label == 1) dogs.push_back(sample.key);
  }
  EXPECT_THAT(dogs, ElementsAre("Dog/1.jpg"));
  EXPECT_LT(dataset->samples().size(), 10u);
}

// Microsoft's download: two empty images (Cat/666.jpg, Dog/11702.jpg) and Thumbs.db
// in both folders.
TEST(ClassFoldersTest, PetImagesWithEmptyImages) {
  TempDir dir;
  for (const char* name :
       {"Cat/0.jpg", "Cat/1.jpg", "Dog/0.jpg", "Cat/Thumbs.db", "Dog/Thumbs.db"}) {
    PutFile(dir.File(std::string("PetImages/") + name));
  }
  PutFile(dir.File("PetImages/Cat/666.jpg"), "");
  PutFile(dir.File("PetImages/Dog/11702.jpg"), "");
  PutFile(dir.File("readme[1].txt"));
  for (const std::string& path : {dir.path(), dir.File("PetImages")}) {
    const auto dataset = OpenOrDie(path);
    EXPECT_EQ(KeysAndLabels(*dataset),
              "Cat/0.jpg=0 Cat/1.jpg=0 Cat/666.jpg=0 Dog/0.jpg=1 Dog/11702.jpg=1");
    EXPECT_EQ(dataset->Describe(), "class folders in " + dir.File("PetImages") +
                                       ": 3 cat, 2 dog (2 other files ignored)");
    EXPECT_EQ(ReadText(*dataset, 2), "");
  }
}

TEST(ListingTest, OtherFilesAreLeftOutAndCounted) {
  TempDir dir;
  PutKaggleImages(dir.path());
  for (const char* name : {".DS_Store", "._cat.0.jpg", "Thumbs.db", "kitten.jpg"}) {
    PutFile(dir.File(name));
  }
  std::filesystem::create_directory(dir.File("cat.77.jpg"));
  ASSERT_EQ(mkfifo(dir.File("cat.78.jpg").c_str(), 0600), 0);
  const auto dataset = OpenOrDie(dir.path());
  EXPECT_EQ(dataset->samples().size(), 5u);
  EXPECT_THAT(dataset->Describe(), HasSubstr("(2 hidden files, 1 other file, 1 folder, "
                                             "1 special file, 1 image of another name ignored)"));
}

TEST(ListingTest, LinksToImagesAreReadAndDanglingOnesGiveTheReason) {
  TempDir dir;
  PutFile(dir.File("elsewhere/x.jpg"), "meow");
  PutFile(dir.File("data/dog.1.jpg"), "wow");
  std::filesystem::create_symlink(dir.File("elsewhere/x.jpg"), dir.File("data/cat.1.jpg"));
  std::filesystem::create_symlink("nowhere", dir.File("data/cat.2.jpg"));
  const auto dataset = OpenOrDie(dir.File("data"));
  EXPECT_THAT(Keys(*dataset), ElementsAre("cat.1.jpg", "cat.2.jpg", "dog.1.jpg"));
  EXPECT_EQ(ReadText(*dataset, 0), "meow");
  const auto dangling = dataset->Read(1);
  ASSERT_FALSE(dangling.ok());
  EXPECT_EQ(dangling.status().code(), StatusCode::kNotFound);
  EXPECT_THAT(dangling.status().message(), HasSubstr("cat.2.jpg"));
}

TEST(ListingTest, NamesThatAreNotUtf8AreReadAndEscaped) {
  TempDir dir;
  PutFile(dir.File("Cat/gar\xe7on.jpg"), "meow");
  PutFile(dir.File("Cat/line\nbreak.jpg"), "two");
  PutFile(dir.File("Dog/\xc3\xa9t\xc3\xa9.jpg"), "wow");
  const auto dataset = OpenOrDie(dir.path());
  EXPECT_THAT(Keys(*dataset), ElementsAre("Cat/gar\\xE7on.jpg", "Cat/line\\x0Abreak.jpg",
                                          "Dog/\xc3\xa9t\xc3\xa9.jpg"));
  EXPECT_EQ(ReadText(*dataset, 0), "meow");
  std::filesystem::remove(dir.File("Cat/gar\xe7on.jpg"));
  EXPECT_THAT(dataset->Read(0).status().message(), HasSubstr("gar\\xE7on.jpg"));
}

TEST(ReadTest, ChangesOfAFileAreAStatus) {
  TempDir dir;
  PutKaggleImages(dir.path());
  const auto dataset = OpenOrDie(dir.path());
  std::filesystem::remove(dir.File("cat.0.jpg"));
  std::filesystem::remove(dir.File("cat.2.jpg"));
  std::filesystem::create_directory(dir.File("cat.2.jpg"));
  std::filesystem::remove(dir.File("cat.10.jpg"));
  ASSERT_EQ(mkfifo(dir.File("cat.10.jpg").c_str(), 0600), 0);
  PutFile(dir.File("dog.1.jpg"), "now another");
  EXPECT_EQ(dataset->Read(1).status().code(), StatusCode::kNotFound);
  EXPECT_FALSE(dataset->Read(2).ok());
  EXPECT_FALSE(dataset->Read(3).ok());
  EXPECT_EQ(ReadText(*dataset, 4), "now another");
}

TEST(ReadTest, FilesAboveTheLimitAreRefused) {
  TempDir dir;
  PutFile(dir.File("cat.0.jpg"), std::string((1 << 20) + 1, 'x'));
  PutFile(dir.File("dog.0.jpg"), std::string(1 << 20, 'x'));
  DataConfig config;
  config.set_path(dir.path());
  config.mutable_bad_images()->set_max_file_mib(1);
  const auto dataset = Dataset::Open(config);
  ASSERT_TRUE(dataset.ok());
  EXPECT_EQ((*dataset)->Read(0).status().code(), StatusCode::kResourceExhausted);
  EXPECT_TRUE((*dataset)->Read(1).ok());
}

TEST(OpenErrorTest, NamesTheExpectedAndTheExistingFilesAndAWayOut) {
  TempDir dir;
  PutFile(dir.File("train.zip"), "PK");
  PutFile(dir.File("sampleSubmission.csv"), "id,label");
  const Status status = OpenError(dir.path());
  EXPECT_EQ(status.code(), StatusCode::kNotFound);
  EXPECT_THAT(status.message(),
              AllOf(HasSubstr("cat.N.jpg"), HasSubstr("Cat/"), HasSubstr("sampleSubmission.csv"),
                    HasSubstr("unpack train.zip")));
}

TEST(OpenErrorTest, AMissingPathNamesItsNeighbours) {
  TempDir dir;
  PutFile(dir.File("training/cat.0.jpg"));
  const Status status = OpenError(dir.File("train/deep"));
  EXPECT_EQ(status.code(), StatusCode::kNotFound);
  EXPECT_THAT(status.message(), AllOf(HasSubstr("train/deep"), HasSubstr("there is training")));
}

TEST(OpenErrorTest, WrongKindsOfPath) {
  TempDir dir;
  PutFile(dir.File("x.jpg"));
  PutFile(dir.File("x.zip"));
  PutKaggleImages(dir.File("data"));
  EXPECT_THAT(OpenError("").message(), HasSubstr("data.path is not set"));
  EXPECT_THAT(OpenError(dir.File("x.jpg")).message(), HasSubstr("single image"));
  EXPECT_THAT(OpenError(dir.File("x.zip")).message(), HasSubstr("unpack it"));
  EXPECT_THAT(OpenError(dir.File("x.zip"), DataConfig::KAGGLE).message(), HasSubstr("is a file"));
  EXPECT_THAT(OpenError(dir.File("data"), DataConfig::PACKED).message(), HasSubstr("is a folder"));
  EXPECT_THAT(OpenError(dir.File("data"), DataConfig::LIST_FILE).message(),
              HasSubstr("is a folder"));
  EXPECT_THAT(OpenError(dir.File("data"), DataConfig::CLASS_FOLDERS).message(),
              HasSubstr("one folder of images per class"));
  EXPECT_THAT(OpenError("/dev/null").message(), HasSubstr("neither a folder nor a file"));
}

}  // namespace
}  // namespace ringtail
