#include "core/storage/safetensors_writer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>

#include "core/storage/crc32c.h"
#include "core/storage/file.h"
#include "core/storage/safetensors_header.h"

namespace ringtail {
namespace {

using nlohmann::json;

constexpr size_t kDataAlignBytes = 64;  // a cache line

// Larger elements first, so that each tensor is aligned for its type without padding between them.
std::vector<const TensorView*> InFileOrder(std::span<const TensorView> tensors) {
  std::vector<const TensorView*> order;
  for (const TensorView& tensor : tensors) order.push_back(&tensor);
  std::stable_sort(order.begin(), order.end(), [](const TensorView* a, const TensorView* b) {
    return DtypeBytes(a->dtype) > DtypeBytes(b->dtype);
  });
  return order;
}

Status CheckTensorName(const std::string& name, const json& header) {
  const std::string quoted = safetensors::Quoted(name);
  if (name == safetensors::kMetadataName) {
    return InvalidArgument("no tensor can have the name " + quoted);
  }
  if (name.size() > safetensors::kMaxNameBytes) {
    return InvalidArgument(fmt::format("the tensor name {} is longer than {} bytes", quoted,
                                       safetensors::kMaxNameBytes));
  }
  if (header.contains(name)) {
    return InvalidArgument("two tensors have the name " + quoted);
  }
  return OkStatus();
}

StatusOr<json> MakeHeader(std::span<const TensorView* const> tensors,
                          const std::map<std::string, std::string>& metadata) {
  json header = json::object();
  json all_metadata = json::object();
  for (const auto& [name, text] : metadata) {
    if (safetensors::IsReserved(name) || name.size() > safetensors::kMaxNameBytes) {
      return InvalidArgument("no metadata can have the name " + safetensors::Quoted(name));
    }
    all_metadata[name] = text;
  }
  size_t offset = 0;
  for (const TensorView* tensor : tensors) {
    RT_CHECK(static_cast<int64_t>(tensor->data.size()) ==
                 NumElements(tensor->shape) * DtypeBytes(tensor->dtype),
             "tensor '" + tensor->name + "': the data does not have the size of the shape");
    RT_RETURN_IF_ERROR(CheckTensorName(tensor->name, header));
    const size_t end = offset + tensor->data.size();
    header[tensor->name] = {{"dtype", DtypeName(tensor->dtype)},
                            {"shape", tensor->shape},
                            {"data_offsets", {offset, end}}};
    all_metadata[std::string(safetensors::kTensorCrcPrefix) + tensor->name] =
        Crc32cToHex(Crc32c(tensor->data));
    offset = end;
  }
  all_metadata[std::string(safetensors::kDataBytesName)] = std::to_string(offset);
  all_metadata[std::string(safetensors::kHeaderCrcName)] = Crc32cToHex(0);
  header[std::string(safetensors::kMetadataName)] = std::move(all_metadata);
  return header;
}

// The header's bytes in the file: padded so that the data is aligned, with their own checksum.
StatusOr<std::string> SerializeHeader(const json& header) {
  std::string text;
  try {
    text = header.dump();
  } catch (const json::exception& error) {
    return InvalidArgument(fmt::format("a tensor name or metadata is not UTF-8: {}", error.what()));
  }
  const size_t unaligned = (safetensors::kLengthBytes + text.size()) % kDataAlignBytes;
  if (unaligned != 0) text.append(kDataAlignBytes - unaligned, ' ');
  if (text.size() > safetensors::kMaxHeaderBytes) {
    return InvalidArgument(fmt::format("names and metadata take {} bytes, more than the {} allowed",
                                       text.size(), safetensors::kMaxHeaderBytes));
  }
  const std::optional<size_t> digits_at = safetensors::FindHeaderCrcDigits(text);
  RT_CHECK(digits_at.has_value(), "the header was just given a checksum");
  const std::string digits = Crc32cToHex(safetensors::HeaderCrc(text, *digits_at));
  text.replace(*digits_at, digits.size(), digits);
  return text;
}

}  // namespace

TensorView ViewF32(std::string name, Shape shape, std::span<const float> data) {
  return {std::move(name), Dtype::kF32, std::move(shape), std::as_bytes(data)};
}

TensorView ViewI32(std::string name, Shape shape, std::span<const int32_t> data) {
  return {std::move(name), Dtype::kI32, std::move(shape), std::as_bytes(data)};
}

Status CheckFinite(std::span<const TensorView> tensors) {
  for (const TensorView& tensor : tensors) {
    if (tensor.dtype != Dtype::kF32) continue;
    const std::span<const float> values(reinterpret_cast<const float*>(tensor.data.data()),
                                        tensor.data.size() / sizeof(float));
    if (!std::ranges::all_of(values, [](float v) { return std::isfinite(v); })) {
      return DataLoss(fmt::format("'{}' has a NaN or infinity", tensor.name));
    }
  }
  return OkStatus();
}

std::vector<std::span<const std::byte>> SafetensorsImage::Pieces() const {
  std::vector<std::span<const std::byte>> pieces = {std::as_bytes(std::span(head))};
  pieces.insert(pieces.end(), data.begin(), data.end());
  return pieces;
}

StatusOr<SafetensorsImage> SerializeSafetensors(
    std::span<const TensorView> tensors, const std::map<std::string, std::string>& metadata) {
  const std::vector<const TensorView*> order = InFileOrder(tensors);
  RT_ASSIGN_OR_RETURN(const json header, MakeHeader(order, metadata));
  RT_ASSIGN_OR_RETURN(const std::string text, SerializeHeader(header));
  SafetensorsImage image;
  image.head.resize(safetensors::kLengthBytes);
  const uint64_t length = text.size();  // little-endian, like our processors
  std::memcpy(image.head.data(), &length, sizeof(length));
  image.head += text;
  for (const TensorView* tensor : order) image.data.push_back(tensor->data);
  return image;
}

Status WriteSafetensors(const std::string& path, std::span<const TensorView> tensors,
                        const std::map<std::string, std::string>& metadata) {
  const auto image = SerializeSafetensors(tensors, metadata);
  if (!image.ok()) return image.status().Annotate("writing '" + path + "'");
  return WriteFileAtomic(path, image->Pieces());
}

}  // namespace ringtail
