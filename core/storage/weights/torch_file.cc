#include "core/storage/weights/torch_file.h"

#include <fmt/format.h>

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>

#include "core/storage/safetensors_header.h"
#include "core/storage/weights/pickle.h"
#include "core/storage/weights/zip_archive.h"

namespace ringtail {
namespace {

using Kind = PickleValue::Kind;

constexpr std::string_view kPickleName = "/data.pkl";
constexpr size_t kMaxDimensions = 8;
constexpr std::array<std::string_view, 5> kStateDictKeys = {
    "state_dict_ema", "model_ema", "state_dict", "model_state_dict", "model"};

std::optional<Dtype> DtypeOfStorage(std::string_view name) {
  constexpr std::pair<std::string_view, Dtype> kStorages[] = {
      {"torch.FloatStorage", Dtype::kF32}, {"torch.DoubleStorage", Dtype::kF64},
      {"torch.HalfStorage", Dtype::kF16},  {"torch.BFloat16Storage", Dtype::kBF16},
      {"torch.LongStorage", Dtype::kI64},  {"torch.IntStorage", Dtype::kI32},
      {"torch.ByteStorage", Dtype::kU8},   {"torch.BoolStorage", Dtype::kU8}};
  for (const auto& [storage, dtype] : kStorages) {
    if (storage == name) return dtype;
  }
  return std::nullopt;
}

class StateDictReader {
 public:
  StateDictReader(const Pickle* pickle, const ZipMembers* members, std::string folder)
      : pickle_(*pickle), members_(*members), folder_(std::move(folder)) {}

  StatusOr<TorchStateDict> Read() const {
    TorchStateDict result;
    const PickleValue* dict = &pickle_.root();
    if (!HasTensors(*dict)) {
      for (const std::string_view key : kStateDictKeys) {
        const PickleValue* inner = pickle_.Find(pickle_.root(), key);
        if (inner == nullptr || !HasTensors(*inner)) continue;
        dict = inner;
        result.taken_from = key;
        break;
      }
    }
    if (!HasTensors(*dict)) return NoStateDict();
    for (size_t i = 0; i + 1 < dict->items.size(); i += 2) {
      const PickleValue& name = pickle_[dict->items[i]];
      const PickleValue* const tensor = TensorOf(pickle_[dict->items[i + 1]]);
      if (name.kind != Kind::kString || tensor == nullptr) continue;  // "_metadata" and the like
      auto read = ReadTensor(*tensor);
      if (!read.ok()) {
        return read.status().Annotate(fmt::format("tensor {}", safetensors::Quoted(name.text)));
      }
      result.tensors[name.text] = *std::move(read);
    }
    return result;
  }

 private:
  // The call that makes a tensor; null if `value` is none. A parameter is a tensor and two flags.
  const PickleValue* TensorOf(const PickleValue& value) const {
    if (pickle_.Calls(value, "torch._utils._rebuild_tensor_v2")) return &value;
    if (!pickle_.Calls(value, "torch._utils._rebuild_parameter")) return nullptr;
    const PickleValue& arguments = pickle_[value.items[1]];
    if (arguments.kind != Kind::kTuple || arguments.items.empty()) return nullptr;
    const PickleValue& data = pickle_[arguments.items[0]];
    return pickle_.Calls(data, "torch._utils._rebuild_tensor_v2") ? &data : nullptr;
  }

  bool HasTensors(const PickleValue& dict) const {
    for (size_t i = 0; dict.kind == Kind::kDict && i + 1 < dict.items.size(); i += 2) {
      if (TensorOf(pickle_[dict.items[i + 1]]) != nullptr) return true;
    }
    return false;
  }

  Status NoStateDict() const {
    const PickleValue& root = pickle_.root();
    if (root.kind == Kind::kCall) {
      return InvalidArgument(
          "it holds a whole module, not its weights; save these: torch.save(model.state_dict(), "
          "'weights.pth')");
    }
    return InvalidArgument(
        "it has no tensors, neither itself nor under state_dict, model or the like; save them: "
        "torch.save(model.state_dict(), 'weights.pth')");
  }

  StatusOr<std::vector<int64_t>> Numbers(const PickleValue& tuple) const {
    if (tuple.kind != Kind::kTuple || tuple.items.size() > kMaxDimensions) {
      return DataLoss(fmt::format("its shape is no tuple of at most {}", kMaxDimensions));
    }
    std::vector<int64_t> numbers;
    for (const uint32_t item : tuple.items) {
      const PickleValue& value = pickle_[item];
      if (value.kind != Kind::kInt || value.number < 0) {
        return DataLoss("its shape has other than counts");
      }
      numbers.push_back(value.number);
    }
    return numbers;
  }

  // The arguments of _rebuild_tensor_v2: storage, offset, size, strides, ...
  StatusOr<StridedTensor> ReadTensor(const PickleValue& call) const {
    const PickleValue& arguments = pickle_[call.items[1]];
    if (arguments.kind != Kind::kTuple || arguments.items.size() < 4) {
      return DataLoss("it is made of too little");
    }
    StridedTensor tensor;
    RT_RETURN_IF_ERROR(ReadStorage(pickle_[arguments.items[0]], &tensor));
    const PickleValue& offset = pickle_[arguments.items[1]];
    RT_ASSIGN_OR_RETURN(tensor.shape, Numbers(pickle_[arguments.items[2]]));
    RT_ASSIGN_OR_RETURN(tensor.strides, Numbers(pickle_[arguments.items[3]]));
    const int64_t elements = static_cast<int64_t>(tensor.data.size()) / DtypeBytes(tensor.dtype);
    if (offset.kind != Kind::kInt || offset.number < 0 || offset.number > elements) {
      return DataLoss("it begins outside its storage");
    }
    tensor.data = tensor.data.subspan(offset.number * DtypeBytes(tensor.dtype));
    if (!IsInside(tensor)) return DataLoss("it reaches outside its storage");
    return tensor;
  }

  // ('storage', torch.FloatStorage, '0', 'cpu', elements)
  Status ReadStorage(const PickleValue& persistent, StridedTensor* tensor) const {
    const Status wrong = DataLoss("its storage is described in an unknown way");
    if (persistent.kind != Kind::kPersistent) return wrong;
    const PickleValue& id = pickle_[persistent.items[0]];
    if (id.kind != Kind::kTuple || id.items.size() < 3) return wrong;
    const PickleValue &type = pickle_[id.items[1]], &key = pickle_[id.items[2]];
    if (type.kind != Kind::kGlobal || key.kind != Kind::kString) return wrong;
    const std::optional<Dtype> dtype = DtypeOfStorage(type.text);
    if (!dtype) {
      return InvalidArgument(
          fmt::format("its elements are of {}, which is not read", safetensors::Quoted(type.text)));
    }
    const auto member = members_.find(folder_ + "/data/" + key.text);
    if (member == members_.end()) return DataLoss("its storage is missing from the archive");
    tensor->dtype = *dtype;
    tensor->data = member->second;
    return OkStatus();
  }

  const Pickle& pickle_;
  const ZipMembers& members_;
  const std::string folder_;
};

// The folder in the archive that data.pkl lies in.
StatusOr<std::string> FindFolder(const ZipMembers& members) {
  for (const auto& [name, data] : members) {
    if (name.ends_with(kPickleName)) return name.substr(0, name.size() - kPickleName.size());
  }
  return InvalidArgument("it is an archive without data.pkl: not a file of torch.save");
}

Status CheckByteOrder(const ZipMembers& members, const std::string& folder) {
  const auto order = members.find(folder + "/byteorder");
  if (order == members.end()) return OkStatus();  // before PyTorch 2.1 there was none
  const std::string_view text(reinterpret_cast<const char*>(order->second.data()),
                              order->second.size());
  if (text == "little") return OkStatus();
  return InvalidArgument("it was written by a big-endian machine; save it again on this one");
}

}  // namespace

// Before PyTorch 1.6 a file was several pickles, one after the other.
bool LooksLikeTorch(std::span<const std::byte> bytes) {
  constexpr std::byte kProto{0x80}, kTwo{2};
  return LooksLikeZip(bytes) || (bytes.size() >= 2 && bytes[0] == kProto && bytes[1] == kTwo);
}

StatusOr<TorchStateDict> ParseTorch(std::span<const std::byte> bytes) {
  if (!LooksLikeZip(bytes)) {
    return InvalidArgument(
        "it has the format before PyTorch 1.6; convert it: "
        "torch.save(torch.load('old.pth', map_location='cpu'), 'new.pth')");
  }
  RT_ASSIGN_OR_RETURN(const ZipMembers members, ParseZip(bytes));
  RT_ASSIGN_OR_RETURN(const std::string folder, FindFolder(members));
  RT_RETURN_IF_ERROR(CheckByteOrder(members, folder));
  RT_ASSIGN_OR_RETURN(const Pickle pickle,
                      Pickle::Parse(members.at(folder + std::string(kPickleName))));
  return StateDictReader(&pickle, &members, folder).Read();
}

}  // namespace ringtail
