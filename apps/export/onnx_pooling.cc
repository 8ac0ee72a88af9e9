#include "apps/export/onnx_pooling.h"

#include <fmt/core.h>

#include <algorithm>
#include <vector>

#include "layers/window.h"

namespace ringtail {
namespace {

constexpr int kRows = 2, kColumns = 3;  // axes of (N, C, H, W)

// Padding behind `size` elements, so that `windows` windows fit.
int64_t PaddingBehind(int64_t windows, int64_t stride, int64_t kernel, int64_t size, int64_t before,
                      int64_t configured) {
  return std::max(configured, (windows - 1) * stride + kernel - size - before);
}

// The mean over `out` windows of one axis; window i covers floor(i size / out) ..
// ceil((i + 1) size / out).
void AverageAxis(int axis, int64_t size, int64_t out, const std::string& input,
                 const std::string& output, OnnxGraph* graph) {
  std::vector<std::string> parts;
  for (int64_t i = 0; i < out; ++i) {
    const int64_t begin = i * size / out, end = ((i + 1) * size + out - 1) / out;
    const std::string part = fmt::format("{}.{}", output, i);
    graph->Add("Slice", {input}, part + ".cut")
        .Ints("axes", {axis})
        .Ints("starts", {begin})
        .Ints("ends", {end});
    const int64_t length = end - begin;
    graph->Add("AveragePool", {part + ".cut"}, part)
        .Ints("kernel_shape",
              axis == kRows ? std::vector<int64_t>{length, 1} : std::vector<int64_t>{1, length})
        .Ints("strides", {1, 1});
    parts.push_back(part);
  }
  graph->Add("Concat", parts, output).Int("axis", axis);
}

}  // namespace

Status AppendPool(const std::string& op_type, const PoolConfig& config, const BlobDesc& src,
                  const BlobDesc& dst, const std::string& input, const std::string& output,
                  OnnxGraph* graph) {
  std::string ignored;
  RT_ASSIGN_OR_RETURN(const Window window,
                      ReadWindow(config.kernel(), config.stride(), config.padding(), {},
                                 DefaultStride::kKernel, FieldCheck(&ignored)));
  const int64_t bottom = PaddingBehind(dst.H, window.SH, window.KH, src.H, window.PT, window.PB);
  const int64_t right = PaddingBehind(dst.W, window.SW, window.KW, src.W, window.PL, window.PR);
  const bool average = op_type == "AveragePool";
  if (average && config.count_padding() && (bottom > window.PB || right > window.PR)) {
    return InvalidArgument(
        "an average_pool that rounds up and counts its padding cannot be "
        "written; set rounding: FLOOR or count_padding: false");
  }
  // OpenCV 4.6 does not read count_include_pad: zeros that count are written out.
  std::string padded = input;
  std::vector<int64_t> pads = {window.PT, window.PL, bottom, right};
  if (average && config.count_padding() && pads != std::vector<int64_t>(4)) {
    padded = output + ".padded";
    graph->Add("Pad", {input}, padded)
        .Ints("pads", {0, 0, window.PT, window.PL, 0, 0, bottom, right});
    pads.assign(4, 0);
  }
  OnnxNode node = graph->Add(op_type, {padded}, output);
  node.Ints("kernel_shape", {window.KH, window.KW})
      .Ints("strides", {window.SH, window.SW})
      .Ints("pads", pads);
  if (average) node.Int("count_include_pad", 0);
  return OkStatus();
}

void AppendAdaptivePool(const BlobDesc& src, const BlobDesc& dst, const std::string& input,
                        const std::string& output, OnnxGraph* graph) {
  if (src.H % dst.H == 0 && src.W % dst.W == 0) {
    const std::vector<int64_t> window = {src.H / dst.H, src.W / dst.W};
    graph->Add("AveragePool", {input}, output).Ints("kernel_shape", window).Ints("strides", window);
    return;
  }
  AverageAxis(kRows, src.H, dst.H, input, output + ".rows", graph);
  AverageAxis(kColumns, src.W, dst.W, output + ".rows", output, graph);
}

}  // namespace ringtail
