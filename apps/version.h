// Ringtail's own version, the build, and the versions of the libraries it runs on.
// Thread-safety: functions without state.
#ifndef RINGTAIL_APPS_VERSION_H_
#define RINGTAIL_APPS_VERSION_H_

#include <string>

namespace ringtail {

inline constexpr char kRingtailVersion[] = "0.1.0";

// Differs between any two builds whose ranks must not train together: a hash of the sources, the
// compiler and its flags (apps/build_id.cmake), equal on machines with equal builds.
extern const char kBuildId[];  // "3f2a9c1b2d4e"
// The version that ranks compare: "0.1.0-3f2a9c1b2d4e".
std::string BuildVersionOfRank();

// "ringtail 0.1.0-3f2a9c1b2d4e (avx512 kernels), oneDNN 2.6.3 (avx512_core), OpenCV 4.6.0, protobuf
// 3.21.12"
std::string VersionLine();

}  // namespace ringtail

#endif  // RINGTAIL_APPS_VERSION_H_
