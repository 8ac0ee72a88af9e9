// The images named on the command line as a data set without labels: files, and all images in
// folders and their subfolders. A warning counts the images in folders whose formats are not
// supported; a file that is named explicitly is tried whatever its extension.
//
// In natural order of the paths; the key is the path as given. Thread-safety: as Dataset. Errors:
// NotFound, naming the path.
#ifndef RINGTAIL_APPS_DOGS_VS_CATS_IMAGE_FILES_H_
#define RINGTAIL_APPS_DOGS_VS_CATS_IMAGE_FILES_H_

#include <memory>
#include <string>
#include <vector>

#include "core/status.h"
#include "data/dataset.h"

namespace ringtail {

StatusOr<std::unique_ptr<Dataset>> OpenImageFiles(const std::vector<std::string>& paths,
                                                  int32_t max_file_mib);

}  // namespace ringtail

#endif  // RINGTAIL_APPS_DOGS_VS_CATS_IMAGE_FILES_H_
