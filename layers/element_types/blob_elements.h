// Blobs as arrays of their elements: the arguments of layers are float*, whatever a blob holds
// (layers/blob.h). A layer that runs on several types is written once, for an Element:
//
//   void ClampLayer::Forward(const ForwardArgs& args) {
//     ForElementOf(desc_.type, [&](auto element) { ForwardOn<decltype(element)>(args); });
//   }
//
// Thread-safety: pure functions.
#ifndef RINGTAIL_LAYERS_ELEMENT_TYPES_BLOB_ELEMENTS_H_
#define RINGTAIL_LAYERS_ELEMENT_TYPES_BLOB_ELEMENTS_H_

#include "core/kernels/bfloat16.h"
#include "layers/blob.h"

namespace ringtail {

// `blob` holds Elements.
template <typename Element>
const Element* ElementsOf(const float* blob) {
  return reinterpret_cast<const Element*>(blob);
}
template <typename Element>
Element* ElementsOf(float* blob) {
  return reinterpret_cast<Element*>(blob);
}

// The address of element `offset` of a blob of that type.
inline const float* ElementAt(BlobType type, const float* blob, int64_t offset) {
  return reinterpret_cast<const float*>(reinterpret_cast<const char*>(blob) +
                                        offset * BytesPerElement(type));
}
inline float* ElementAt(BlobType type, float* blob, int64_t offset) {
  return reinterpret_cast<float*>(reinterpret_cast<char*>(blob) + offset * BytesPerElement(type));
}

// Calls fn with a value of the type that elements have.
template <typename Function>
void ForElementOf(BlobType type, const Function& fn) {
  if (type == BlobType::kBf16) return fn(Bfloat16{});
  fn(float{});
}

}  // namespace ringtail

#endif  // RINGTAIL_LAYERS_ELEMENT_TYPES_BLOB_ELEMENTS_H_
