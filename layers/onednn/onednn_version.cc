#include "layers/onednn/onednn_version.h"

#include <fmt/core.h>

#include <oneapi/dnnl/dnnl.hpp>

namespace ringtail {
namespace {

const char* IsaName(dnnl::cpu_isa isa) {
  switch (isa) {
    case dnnl::cpu_isa::sse41:
      return "sse41";
    case dnnl::cpu_isa::avx:
      return "avx";
    case dnnl::cpu_isa::avx2:
      return "avx2";
    case dnnl::cpu_isa::avx2_vnni:
      return "avx2_vnni";
    case dnnl::cpu_isa::avx512_core:
      return "avx512_core";
    case dnnl::cpu_isa::avx512_core_vnni:
      return "avx512_core_vnni";
    case dnnl::cpu_isa::avx512_core_bf16:
      return "avx512_core_bf16";
    case dnnl::cpu_isa::avx512_core_amx:
      return "avx512_core_amx";
    default:
      return "another instruction set";
  }
}

}  // namespace

std::string OneDnnVersion() {
  const dnnl_version_t* version = dnnl_version();
  return fmt::format("{}.{}.{} ({})", version->major, version->minor, version->patch,
                     IsaName(dnnl::get_effective_cpu_isa()));
}

}  // namespace ringtail
