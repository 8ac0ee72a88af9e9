// Pooling layers as nodes of ONNX.
// Thread-safety: none.
#ifndef RINGTAIL_APPS_EXPORT_ONNX_POOLING_H_
#define RINGTAIL_APPS_EXPORT_ONNX_POOLING_H_

#include <string>

#include "apps/export/onnx_graph.h"
#include "core/status.h"
#include "layers/blob.h"
#include "layers/net.pb.h"

namespace ringtail {

// `op_type`: MaxPool or AveragePool. Rounding up is written as padding below and to the right,
// which operator set 9 knows. InvalidArgument where that padding would have to count as zeros.
Status AppendPool(const std::string& op_type, const PoolConfig& config, const BlobDesc& src,
                  const BlobDesc& dst, const std::string& input, const std::string& output,
                  OnnxGraph* graph);

// Windows that differ in size are cut out one by one: first rows, then columns.
void AppendAdaptivePool(const BlobDesc& src, const BlobDesc& dst, const std::string& input,
                        const std::string& output, OnnxGraph* graph);

}  // namespace ringtail

#endif  // RINGTAIL_APPS_EXPORT_ONNX_POOLING_H_
