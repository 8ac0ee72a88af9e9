// Which oneDNN this process runs on: "2.6.3 (avx512_core)", version and instruction set in use.
#ifndef RINGTAIL_LAYERS_ONEDNN_ONEDNN_VERSION_H_
#define RINGTAIL_LAYERS_ONEDNN_ONEDNN_VERSION_H_

#include <string>

namespace ringtail {

std::string OneDnnVersion();

}  // namespace ringtail

#endif  // RINGTAIL_LAYERS_ONEDNN_ONEDNN_VERSION_H_
