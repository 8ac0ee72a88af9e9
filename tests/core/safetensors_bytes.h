// safetensors files built byte by byte, so that tests do not depend on the writer.
#ifndef RINGTAIL_TESTS_CORE_SAFETENSORS_BYTES_H_
#define RINGTAIL_TESTS_CORE_SAFETENSORS_BYTES_H_

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

namespace ringtail {

// A file that claims `length` bytes of header, followed by `rest`.
inline std::vector<std::byte> BytesWithLength(uint64_t length, std::string_view rest) {
  std::vector<std::byte> bytes(sizeof(length) + rest.size());
  std::memcpy(bytes.data(), &length, sizeof(length));
  if (!rest.empty()) std::memcpy(bytes.data() + sizeof(length), rest.data(), rest.size());
  return bytes;
}

inline std::vector<std::byte> SafetensorsBytes(std::string_view json, std::string_view data) {
  return BytesWithLength(json.size(), std::string(json) + std::string(data));
}

// The bytes of numbers in a file.
template <typename T>
std::string Packed(std::initializer_list<T> numbers) {
  return {reinterpret_cast<const char*>(numbers.begin()), numbers.size() * sizeof(T)};
}

}  // namespace ringtail

#endif  // RINGTAIL_TESTS_CORE_SAFETENSORS_BYTES_H_
