#include "apps/version.h"

#include <fmt/core.h>
#include <google/protobuf/stubs/common.h>

#include <opencv2/core/utility.hpp>

#include "core/kernel_isa.h"
#include "layers/onednn/onednn_version.h"

namespace ringtail {

std::string BuildVersionOfRank() { return fmt::format("{}-{}", kRingtailVersion, kBuildId); }

std::string VersionLine() {
  return fmt::format("ringtail {} ({} kernels), oneDNN {}, OpenCV {}, protobuf {}",
                     BuildVersionOfRank(), KernelIsaName(SelectedKernelIsa()), OneDnnVersion(),
                     cv::getVersionString(),
                     google::protobuf::internal::VersionString(GOOGLE_PROTOBUF_VERSION));
}

}  // namespace ringtail
