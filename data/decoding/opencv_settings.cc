#include "data/decoding/opencv_settings.h"

#include <atomic>
#include <opencv2/core/utility.hpp>
#include <opencv2/core/utils/logger.hpp>

namespace ringtail {
namespace {

std::atomic<bool> keep_settings = false;

}  // namespace

void ConfigureOpenCvOnce() {
  if (keep_settings) return;
  static const bool configured = [] {
    cv::setNumThreads(1);
    cv::utils::logging::setLogLevel(cv::utils::logging::LOG_LEVEL_SILENT);
    return true;
  }();
  (void)configured;
}

void KeepOpenCvSettings() { keep_settings = true; }

}  // namespace ringtail
