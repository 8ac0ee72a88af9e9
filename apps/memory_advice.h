// Advice for nets that do not fit into memory. Net::Create reports how much is missing, but only
// its caller knows from which flag or field the batch and the image size came.
#ifndef RINGTAIL_APPS_MEMORY_ADVICE_H_
#define RINGTAIL_APPS_MEMORY_ADVICE_H_

#include <string>
#include <utility>

#include "core/status.h"

namespace ringtail {

// Returns `made`; appends "; take <less>" to its error if that is a lack of memory.
template <typename T>
StatusOr<T> AdviseOnMemory(StatusOr<T> made, const std::string& less) {
  if (made.status().code() != StatusCode::kResourceExhausted) return made;
  return ResourceExhausted(made.status().message() + "; take " + less);
}

}  // namespace ringtail

#endif  // RINGTAIL_APPS_MEMORY_ADVICE_H_
