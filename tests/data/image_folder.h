// Folders of files for the tests of data/; listing ignores the files' content.
#ifndef RINGTAIL_TESTS_DATA_IMAGE_FOLDER_H_
#define RINGTAIL_TESTS_DATA_IMAGE_FOLDER_H_

#include <string>
#include <string_view>
#include <vector>

#include "data/dataset.h"

namespace ringtail {

// Writes `content` to `path`; creates missing parent folders.
void PutFile(const std::string& path, std::string_view content = "image");

// Dataset::Open of `path`; fails the test on an error.
std::unique_ptr<Dataset> OpenOrDie(const std::string& path,
                                   DataConfig::Layout layout = DataConfig::AUTO);
// The error of Dataset::Open, which must fail.
Status OpenError(const std::string& path, DataConfig::Layout layout = DataConfig::AUTO);

std::vector<std::string> Keys(const Dataset& dataset);
// "cat.0.jpg=0 dog.0.jpg=1"
std::string KeysAndLabels(const Dataset& dataset);
std::string ReadText(const Dataset& dataset, int64_t i);

}  // namespace ringtail

#endif  // RINGTAIL_TESTS_DATA_IMAGE_FOLDER_H_
