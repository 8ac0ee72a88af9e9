// Files of torch.save, made by hand: the archive around a pickle, and pickles from pieces.
#ifndef RINGTAIL_TESTS_CORE_STORAGE_WEIGHTS_TORCH_BYTES_H_
#define RINGTAIL_TESTS_CORE_STORAGE_WEIGHTS_TORCH_BYTES_H_

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace ringtail {

using ZipContents = std::vector<std::pair<std::string, std::string>>;

template <typename T>
std::string LittleEndian(T value) {
  return {reinterpret_cast<const char*>(&value), sizeof(T)};
}

// A ZIP archive of stored members, in this order; checksums are zero.
inline std::string ZipOf(const ZipContents& members) {
  std::string bytes, directory;
  for (const auto& [name, data] : members) {
    const auto size = static_cast<uint32_t>(data.size());
    const auto name_bytes = static_cast<uint16_t>(name.size());
    const std::string sizes = LittleEndian(uint32_t{0}) + LittleEndian(size) + LittleEndian(size);
    const std::string common =
        LittleEndian(uint16_t{20}) + std::string(8, '\0');  // version, ..., time
    directory += "PK\x01\x02" + LittleEndian(uint16_t{20}) + common + sizes +
                 LittleEndian(name_bytes) + std::string(12, '\0') +
                 LittleEndian(static_cast<uint32_t>(bytes.size())) + name;
    bytes += "PK\x03\x04" + common + sizes + LittleEndian(name_bytes) + std::string(2, '\0') +
             name + data;
  }
  const auto count = static_cast<uint16_t>(members.size());
  const std::string end = std::string("PK\x05\x06") + std::string(4, '\0') + LittleEndian(count) +
                          LittleEndian(count) +
                          LittleEndian(static_cast<uint32_t>(directory.size())) +
                          LittleEndian(static_cast<uint32_t>(bytes.size())) + std::string(2, '\0');
  return bytes + directory + end;
}

// Opcodes of Python's pickle for plain values.
inline std::string PickleText(const std::string& text) {
  return "X" + LittleEndian(static_cast<uint32_t>(text.size())) + text;
}
inline std::string PickleInt(int32_t value) { return "J" + LittleEndian(value); }
inline std::string PickleInts(const std::vector<int32_t>& values) {
  std::string tuple = "(";
  for (const int32_t value : values) tuple += PickleInt(value);
  return tuple + "t";
}
inline std::string PickleGlobal(const std::string& module, const std::string& name) {
  return "c" + module + "\n" + name + "\n";
}

// As torch.save writes a tensor: its storage by key, then where and how it lies in it.
inline std::string PickleTensor(const std::string& storage, const std::string& key, int32_t offset,
                                const std::vector<int32_t>& shape,
                                const std::vector<int32_t>& strides) {
  return PickleGlobal("torch._utils", "_rebuild_tensor_v2") + "((" + PickleText("storage") +
         PickleGlobal("torch", storage) + PickleText(key) + PickleText("cpu") + PickleInt(0) +
         "tQ" + PickleInt(offset) + PickleInts(shape) + PickleInts(strides) + "\x89" +
         PickleGlobal("collections", "OrderedDict") + ")RtR";
}

// A dict of names and values.
inline std::string PickleDict(const std::vector<std::pair<std::string, std::string>>& items) {
  std::string dict = PickleGlobal("collections", "OrderedDict") + ")R(";
  for (const auto& [name, value] : items) dict += PickleText(name) + value;
  return dict + "u";
}

inline std::string TorchFile(const std::string& value, const ZipContents& storages) {
  ZipContents members = {{"net/data.pkl", std::string("\x80\x02") + value + "."},
                         {"net/byteorder", "little"}};
  for (const auto& [key, data] : storages) members.emplace_back("net/data/" + key, data);
  return ZipOf(members);
}

inline std::span<const std::byte> BytesOf(const std::string& text) {
  return std::as_bytes(std::span(text));
}

}  // namespace ringtail

#endif  // RINGTAIL_TESTS_CORE_STORAGE_WEIGHTS_TORCH_BYTES_H_
