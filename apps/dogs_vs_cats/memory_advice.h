// What to change where a net does not fit into memory. Net::Create says how much is missing, but
// only its caller knows which flag or field the batch and the images' size came from.
#ifndef RINGTAIL_APPS_DOGS_VS_CATS_MEMORY_ADVICE_H_
#define RINGTAIL_APPS_DOGS_VS_CATS_MEMORY_ADVICE_H_

#include <string>
#include <utility>

#include "core/status.h"

namespace ringtail {

// `made`, or its error; one of memory ends with "; take <less>".
template <typename T>
StatusOr<T> AdviseOnMemory(StatusOr<T> made, const std::string& less) {
  if (made.status().code() != StatusCode::kResourceExhausted) return made;
  return ResourceExhausted(made.status().message() + "; take " + less);
}

}  // namespace ringtail

#endif  // RINGTAIL_APPS_DOGS_VS_CATS_MEMORY_ADVICE_H_
