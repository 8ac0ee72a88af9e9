// The images that a layout found, and the Dataset over them. A layout made of image files only
// fills an ImageList; data/layouts/kaggle_folder.cc is the example to follow.
// Thread-safety: ImageList is a value type; the Dataset is const.
#ifndef RINGTAIL_DATA_IMAGE_LIST_H_
#define RINGTAIL_DATA_IMAGE_LIST_H_

#include <memory>
#include <string>
#include <vector>

#include "data/dataset.h"
#include "data/describe.h"

namespace ringtail {

struct ListedImage {
  std::string path;  // the file system's bytes
  Sample sample;     // its key is escaped
};

struct ImageList {
  std::string layout;  // "Kaggle layout"
  std::string root;    // the folder or list file that holds them
  std::vector<std::string> class_names;
  std::vector<ListedImage> images;  // in any order; empty if the folder has another layout
  IgnoredFiles ignored;
};

// `list` as a Dataset, sorted by key; Read refuses files above `max_file_mib`.
std::unique_ptr<Dataset> MakeFileDataset(ImageList list, int32_t max_file_mib);

}  // namespace ringtail

#endif  // RINGTAIL_DATA_IMAGE_LIST_H_
