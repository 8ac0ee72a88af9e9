// Images named on the command line, as a data set without labels: files, and all images in
// folders and their subfolders. Images in them of formats that are not read are counted in a
// warning; a file that is named itself is tried, whatever it is called.
//
// In natural order of their paths; the key is the path as given. Thread-safety: as Dataset. Errors:
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
