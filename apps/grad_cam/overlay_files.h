// Grad-CAM of images as files in a folder: `predict --grad-cam DIR`.
//
//   cat.7.grad_cam.jpg ...   each image, cut as for the network but of kOverlaySize pixels, under its
//                            map; the name is the image's, with "-2", "-3", ... where another image
//                            has the same
//   grad_cam.csv             a row an image: image,overlay,label,layer,height,width,map; map: height
//                            * width numbers 0 .. 1, row by row, with spaces between them
//
// Images that cannot be read are left out. Files that are there already are replaced.
// Thread-safety: the trainer thread only. Cost: each image is read twice more.
#ifndef RINGTAIL_APPS_GRAD_CAM_OVERLAY_FILES_H_
#define RINGTAIL_APPS_GRAD_CAM_OVERLAY_FILES_H_

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "apps/grad_cam/grad_cam_net.h"
#include "core/status.h"
#include "data/data.pb.h"
#include "data/dataset.h"
#include "layers/net/model.h"

namespace ringtail {

inline constexpr char kGradCamTableName[] = "grad_cam.csv";
inline constexpr int64_t kOverlaySize = 384;  // pixels, square

// For all images of `dataset`, each for the class in `classes` (-1: leave it out), whose name is
// class_names[class], or "class 5". Errors: those of CreateGradCamNet, of the loader, of writing.
Status WriteGradCamFiles(Model* model, const Dataset& dataset, std::span<const int32_t> classes,
                         const std::vector<std::string>& class_names, const DataConfig& data,
                         const GradCamOptions& options, const std::string& folder);

}  // namespace ringtail

#endif  // RINGTAIL_APPS_GRAD_CAM_OVERLAY_FILES_H_
