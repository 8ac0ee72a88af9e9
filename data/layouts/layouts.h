// The layouts of image files that Dataset::Open knows, one source file each; one header, so that a
// layout is added in one place. A layout that does not match the folder gives a list without
// images, not an error; errors are for folders that cannot be read and for invalid content.
// Thread-safety: functions without state.
#ifndef RINGTAIL_DATA_LAYOUTS_LAYOUTS_H_
#define RINGTAIL_DATA_LAYOUTS_LAYOUTS_H_

#include <string>

#include "core/status.h"
#include "data/image_list.h"

namespace ringtail {

// kaggle_folder.cc: cat.N.jpg and dog.N.jpg in `folder`, `folder`/train or `folder`/train/train (as
// some unpackers leave them); cat = 0, dog = 1. Keys are relative to where the images lie, so
// that /data and /data/train give the same keys and the same split.
StatusOr<ImageList> FindKaggleImages(const std::string& folder);

// kaggle_folder.cc: images of any name, without labels, in `folder`,
// `folder`/test1 or `folder`/test.
StatusOr<ImageList> FindUnlabelledImages(const std::string& folder);

// class_folders.cc: one folder per class, with images at any depth, in `folder`,
// `folder`/PetImages or `folder`/train; classes in natural order of their names. If `folder` has
// train/ and validation/ (or val/ or valid/) with class folders, both are taken and the samples say
// which part they belong to. Unless `certain`, a single class does not count, and folders with
// names like "test1" are no classes.
StatusOr<ImageList> FindClassFolders(const std::string& folder, bool certain);

// list_file.cc: "path label" per line, or CSV; errors are "file:line: message".
StatusOr<ImageList> ReadListFile(const std::string& path);

}  // namespace ringtail

#endif  // RINGTAIL_DATA_LAYOUTS_LAYOUTS_H_
