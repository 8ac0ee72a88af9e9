// Ringtail's own version and that of the libraries it runs on.
#ifndef RINGTAIL_APPS_VERSION_H_
#define RINGTAIL_APPS_VERSION_H_

#include <string>

namespace ringtail {

inline constexpr char kRingtailVersion[] = "0.1.0";

// "ringtail 0.1.0 (avx512 kernels), oneDNN 2.6.3 (avx512_core), OpenCV 4.6.0, protobuf 3.21.12"
std::string VersionLine();

}  // namespace ringtail

#endif  // RINGTAIL_APPS_VERSION_H_
