#include "core/storage/safetensors_header.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "core/storage/crc32c.h"

namespace ringtail::safetensors {
namespace {

using Entry = SafetensorsFile::Entry;

constexpr std::string_view kZeroDigits = "00000000";

std::optional<Dtype> DtypeOfName(std::string_view name) {
  for (const Dtype dtype : {Dtype::kF32, Dtype::kI32, Dtype::kI64, Dtype::kU8, Dtype::kF64,
                            Dtype::kF16, Dtype::kBF16}) {
    if (DtypeName(dtype) == name) return dtype;
  }
  return std::nullopt;
}

// Bytes of a tensor; nullopt if they do not fit into 63 bits. Dimensions of zero count as one in
// the product, so that no order of multiplication can overflow later.
std::optional<uint64_t> TensorBytes(const Entry& entry) {
  int64_t bytes = DtypeBytes(entry.dtype);
  bool empty = false;
  for (const int64_t dimension : entry.shape) {
    empty = empty || dimension == 0;
    if (__builtin_mul_overflow(bytes, std::max<int64_t>(dimension, 1), &bytes)) return std::nullopt;
  }
  return empty ? 0 : static_cast<uint64_t>(bytes);
}

// Receives the header as a stream of events, with a few states; an event that does not fit the
// state ends the parsing. So nesting is bounded, numbers keep their kind, and duplicate names are
// seen, all of which a parsed tree would hide.
class HeaderReader : public nlohmann::json_sax<nlohmann::json> {
 public:
  explicit HeaderReader(size_t data_bytes) : data_bytes_(data_bytes) {}
  Header& header() { return header_; }
  const std::string& error() const { return error_; }

  bool null() override { return Unexpected("null"); }
  bool boolean(bool /*value*/) override { return Unexpected("true or false"); }
  bool number_integer(int64_t /*value*/) override { return Unexpected("a negative number"); }
  bool number_float(double /*value*/, const std::string& text) override {
    return Unexpected("the number " + text.substr(0, kMaxQuotedBytes));
  }
  bool binary(nlohmann::json::binary_t& /*value*/) override { return Unexpected("binary data"); }
  bool number_unsigned(uint64_t value) override;
  bool string(std::string& value) override;
  bool start_object(size_t /*elements*/) override;
  bool key(std::string& name) override;
  bool end_object() override;
  bool start_array(size_t /*elements*/) override;
  bool end_array() override;
  bool parse_error(size_t position, const std::string& /*last_token*/,
                   const nlohmann::json::exception& /*error*/) override {
    return Fail(fmt::format("the header is not JSON: see byte {} of it", position));
  }

  static constexpr size_t kMaxQuotedBytes = 64;

 private:
  enum class State { kStart, kRoot, kTensor, kShape, kOffsets, kMetadata, kEnd };
  enum Field { kDtype, kShape, kOffsets, kFieldCount };
  static constexpr std::array<std::string_view, kFieldCount> kFieldNames = {"dtype", "shape",
                                                                            "data_offsets"};

  bool Fail(std::string reason) {
    error_ = std::move(reason);
    return false;
  }
  bool Unexpected(std::string_view what);
  bool RootKey(const std::string& name);
  bool TensorKey(const std::string& name);
  bool FinishTensor();

  const size_t data_bytes_;
  Header header_;
  std::string error_;
  State state_ = State::kStart;
  bool metadata_seen_ = false;
  std::string name_;           // of the current tensor or metadata
  Field field_ = kFieldCount;  // of the current tensor
  std::array<bool, kFieldCount> field_seen_{};
  Entry entry_;
  std::vector<uint64_t> offsets_;
};

bool HeaderReader::Unexpected(std::string_view what) {
  const std::string_view where = state_ == State::kTensor    ? kFieldNames[field_]
                                 : state_ == State::kShape   ? kFieldNames[kShape]
                                 : state_ == State::kOffsets ? kFieldNames[kOffsets]
                                                             : "";
  switch (state_) {
    case State::kStart:
    case State::kEnd:
      return Fail(fmt::format("the header is {}, not an object", what));
    case State::kRoot:
      return Fail(fmt::format("{} is {}, not an object", Quoted(name_), what));
    case State::kMetadata:
      return Fail(fmt::format("metadata {} is {}, not a text", Quoted(name_), what));
    default:
      return Fail(
          fmt::format("tensor {}: {} must not be or contain {}", Quoted(name_), where, what));
  }
}

bool HeaderReader::number_unsigned(uint64_t value) {
  if (state_ == State::kShape) {
    if (entry_.shape.size() == kMaxDimensions) {
      return Fail(
          fmt::format("tensor {} has more than {} dimensions", Quoted(name_), kMaxDimensions));
    }
    if (value > static_cast<uint64_t>(INT64_MAX)) {
      return Fail(fmt::format("tensor {}: dimension {} is too large", Quoted(name_), value));
    }
    entry_.shape.push_back(static_cast<int64_t>(value));
    return true;
  }
  if (state_ == State::kOffsets) {
    if (offsets_.size() == 2) {
      return Fail(fmt::format("tensor {} has more than two data_offsets", Quoted(name_)));
    }
    offsets_.push_back(value);
    return true;
  }
  return Unexpected("a number");
}

bool HeaderReader::string(std::string& value) {
  if (state_ == State::kMetadata) {
    header_.metadata[name_] = std::move(value);
    return true;
  }
  if (state_ != State::kTensor || field_ != kDtype) return Unexpected("a text");
  const std::optional<Dtype> dtype = DtypeOfName(value);
  if (!dtype) {
    return Fail(
        fmt::format("tensor {} has dtype {}, which is none of F64, F32, F16, BF16, I64, I32, U8; "
                    "convert it",
                    Quoted(name_), Quoted(value)));
  }
  entry_.dtype = *dtype;
  return true;
}

bool HeaderReader::start_object(size_t /*elements*/) {
  if (state_ == State::kStart) {
    state_ = State::kRoot;
    return true;
  }
  if (state_ != State::kRoot) return Unexpected("an object");
  state_ = name_ == kMetadataName ? State::kMetadata : State::kTensor;
  entry_ = {};
  offsets_.clear();
  field_seen_ = {};
  return true;
}

bool HeaderReader::key(std::string& name) {
  if (name.size() > kMaxNameBytes) {
    return Fail(fmt::format("the name {} is longer than {} bytes", Quoted(name), kMaxNameBytes));
  }
  if (state_ == State::kTensor) return TensorKey(name);
  if (state_ == State::kRoot) return RootKey(name);
  if (header_.metadata.contains(name)) {
    return Fail(fmt::format("metadata {} occurs twice", Quoted(name)));
  }
  name_ = name;
  return true;
}

bool HeaderReader::RootKey(const std::string& name) {
  const bool is_metadata = name == kMetadataName;
  if (header_.entries.contains(name) || (is_metadata && metadata_seen_)) {
    return Fail(fmt::format("{} occurs twice", Quoted(name)));
  }
  metadata_seen_ = metadata_seen_ || is_metadata;
  name_ = name;
  return true;
}

bool HeaderReader::TensorKey(const std::string& name) {
  for (int i = 0; i < kFieldCount; ++i) {
    if (kFieldNames[i] != name) continue;
    if (std::exchange(field_seen_[i], true)) {
      return Fail(fmt::format("tensor {} has {} twice", Quoted(name_), name));
    }
    field_ = static_cast<Field>(i);
    return true;
  }
  return Fail(fmt::format("tensor {} has an unknown field {}", Quoted(name_), Quoted(name)));
}

bool HeaderReader::end_object() {
  if (state_ == State::kTensor) {
    state_ = State::kRoot;
    return FinishTensor();
  }
  state_ = state_ == State::kMetadata ? State::kRoot : State::kEnd;
  return true;
}

bool HeaderReader::start_array(size_t /*elements*/) {
  if (state_ != State::kTensor || field_ == kDtype) return Unexpected("a list");
  state_ = field_ == kShape ? State::kShape : State::kOffsets;
  return true;
}

bool HeaderReader::end_array() {
  state_ = State::kTensor;
  return true;
}

bool HeaderReader::FinishTensor() {
  for (int i = 0; i < kFieldCount; ++i) {
    if (!field_seen_[i]) {
      return Fail(fmt::format("tensor {} has no {}", Quoted(name_), kFieldNames[i]));
    }
  }
  if (offsets_.size() != 2) {
    return Fail(fmt::format("tensor {} needs two data_offsets, a start and an end", Quoted(name_)));
  }
  if (offsets_[0] > offsets_[1] || offsets_[1] > data_bytes_) {
    return Fail(
        fmt::format("tensor {}: its data_offsets {} to {} are not inside the {} bytes of data",
                    Quoted(name_), offsets_[0], offsets_[1], data_bytes_));
  }
  const std::optional<uint64_t> bytes = TensorBytes(entry_);
  if (!bytes) return Fail(fmt::format("tensor {}: its shape is too large", Quoted(name_)));
  if (*bytes != offsets_[1] - offsets_[0]) {
    return Fail(fmt::format("tensor {}: {} of shape [{}] is {} bytes, but its data_offsets span {}",
                            Quoted(name_), DtypeName(entry_.dtype), ShapeString(entry_.shape),
                            *bytes, offsets_[1] - offsets_[0]));
  }
  entry_.begin = offsets_[0];
  entry_.end = offsets_[1];
  header_.entries.emplace(name_, std::move(entry_));
  return true;
}

// Sorted by offset, each tensor must start where the previous one ends; the last one ends the data.
Status CheckCoverage(const std::map<std::string, Entry>& entries, size_t data_bytes) {
  std::vector<std::pair<const Entry*, const std::string*>> by_place;
  by_place.reserve(entries.size());
  for (const auto& [name, entry] : entries) by_place.emplace_back(&entry, &name);
  std::sort(by_place.begin(), by_place.end(), [](const auto& a, const auto& b) {
    return std::pair(a.first->begin, a.first->end) < std::pair(b.first->begin, b.first->end);
  });
  size_t covered = 0;
  for (const auto& [entry, name] : by_place) {
    if (entry->begin < covered) {
      return DataLoss(
          fmt::format("tensor {} overlaps the previous one: it starts at byte {}, not {}",
                      Quoted(*name), entry->begin, covered));
    }
    if (entry->begin > covered) {
      return DataLoss(fmt::format("there is a hole before tensor {}: bytes {} to {} belong to none",
                                  Quoted(*name), covered, entry->begin));
    }
    covered = entry->end;
  }
  if (covered == data_bytes) return OkStatus();
  return DataLoss(
      fmt::format("the tensors end at byte {} of the data, but it has {}", covered, data_bytes));
}

}  // namespace

bool IsReserved(std::string_view metadata_name) {
  return metadata_name.starts_with(kTensorCrcPrefix) || metadata_name == kHeaderCrcName ||
         metadata_name == kDataBytesName;
}

StatusOr<Header> ParseHeader(std::string_view json, size_t data_bytes) {
  if (!json.starts_with('{')) return DataLoss("the header does not start with '{'");
  HeaderReader reader(data_bytes);
  if (!nlohmann::json::sax_parse(json, &reader)) return DataLoss(reader.error());
  RT_RETURN_IF_ERROR(CheckCoverage(reader.header().entries, data_bytes));
  return std::move(reader.header());
}

std::string Quoted(std::string_view name) {
  constexpr size_t kMaxBytes = HeaderReader::kMaxQuotedBytes;
  using Json = nlohmann::json;
  const std::string quoted =
      Json(name.substr(0, kMaxBytes)).dump(-1, ' ', true, Json::error_handler_t::replace);
  return name.size() <= kMaxBytes ? quoted : quoted + "...";
}

std::optional<size_t> FindHeaderCrcDigits(std::string_view json) {
  // Inside a string the quotes would be escaped, so this can only be the name itself.
  const std::string name = fmt::format("\"{}\":\"", kHeaderCrcName);
  const size_t found = json.find(name);
  if (found == std::string_view::npos) return std::nullopt;
  const size_t digits_at = found + name.size();
  if (json.size() - digits_at < kZeroDigits.size()) return std::nullopt;
  return digits_at;
}

uint32_t HeaderCrc(std::string_view json, size_t digits_at) {
  const uint64_t length = json.size();
  const auto bytes = [](std::string_view text) { return std::as_bytes(std::span(text)); };
  uint32_t crc = Crc32c(std::as_bytes(std::span(&length, 1)));
  crc = Crc32c(bytes(json.substr(0, digits_at)), crc);
  crc = Crc32c(bytes(kZeroDigits), crc);
  return Crc32c(bytes(json.substr(digits_at + kZeroDigits.size())), crc);
}

}  // namespace ringtail::safetensors
