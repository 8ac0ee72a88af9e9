// What an arena of the same parameters as another is created from.
#ifndef RINGTAIL_CORE_PARAMETER_SPECS_H_
#define RINGTAIL_CORE_PARAMETER_SPECS_H_

#include <span>
#include <vector>

#include "core/parameter.h"

namespace ringtail {

inline std::vector<ParameterSpec> SpecsOf(std::span<const Parameter> parameters) {
  std::vector<ParameterSpec> specs;
  specs.reserve(parameters.size());
  for (const Parameter& parameter : parameters) specs.push_back(parameter.spec);
  return specs;
}

}  // namespace ringtail

#endif  // RINGTAIL_CORE_PARAMETER_SPECS_H_
