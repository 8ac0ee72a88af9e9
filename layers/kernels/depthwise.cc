#include "layers/kernels/depthwise.h"

#include "layers/kernels/batch_norm.h"
#include "layers/kernels/depthwise_rows.h"
#include "layers/kernels/depthwise_taps.h"

namespace ringtail::RT_KERNEL_ISA {
namespace depthwise {
namespace {

template <int kKernel, int kStride>
void RunForward(const DepthwisePlane& plane, const DepthwiseSrc& src, const float* weight,
                const Epilogue& epilogue, const DepthwiseOutput& dst,
                const DepthwiseMoments& moments) {
  const Geometry<Forward<kKernel, kStride>> geometry(plane);
  InputRows<kKernel, DepthwiseSrc> in(src, plane.W);
  const OutputRows out(dst, plane.OW);
  const bool takes_moments = moments.mean != nullptr;
  for (int64_t y = 0; y < plane.OH; ++y) {
    const Ahead ahead = {src.data + y * kStride * plane.W * kLanes, kStride * kStride};
    WriteRow(geometry, y, &in, weight, epilogue, ahead, out.At(y));
    if (!takes_moments) out.Finish(y, y + 1);
  }
  if (!takes_moments) return;
  BatchNormMoments(out.At(0), plane.OH * plane.OW, kLanes, moments.mean, moments.m2);
  out.Finish(0, plane.OH);
}

}  // namespace
}  // namespace depthwise

void DepthwiseForward(const DepthwisePlane& plane, const DepthwiseSrc& src, const float* weight,
                      const DepthwiseEpilogue& epilogue, const DepthwiseOutput& dst,
                      const DepthwiseMoments& moments) {
  using depthwise::RunForward;
  const auto run = plane.kernel == 3 ? (plane.stride == 1 ? RunForward<3, 1> : RunForward<3, 2>)
                                     : (plane.stride == 1 ? RunForward<5, 1> : RunForward<5, 2>);
  run(plane, src, weight, {Load(epilogue.bias), Broadcast(epilogue.low), Broadcast(epilogue.high)},
      dst, moments);
  if (dst.buffer != nullptr) FinishStreaming();
}

int64_t DepthwiseLanes() { return kLanes; }

}  // namespace ringtail::RT_KERNEL_ISA
