// As many outputs of a network as its images have classes.
//
// The layer that gives the logits is found from the loss upwards, through layers that keep the
// number of channels (flatten, pooling, dropout): a linear, drop_connect or convolution of the
// config. Of other networks the number stays, and training refuses more classes than it.
// Thread-safety: a function without state.
#ifndef RINGTAIL_APPS_CONFIG_CLASS_OUTPUTS_H_
#define RINGTAIL_APPS_CONFIG_CLASS_OUTPUTS_H_

#include <span>
#include <string>
#include <vector>

#include "apps/config/run_config.h"
#include "core/status.h"

namespace ringtail {

// Changes the config, and says so: "fc: 5 outputs, one for each class (configured: 2)"; empty if
// nothing had to change, if there are fewer than two classes, or if no such layer is found.
// A number that one of `overrides` (--set) has set stays; InvalidArgument if it is below `classes`.
StatusOr<std::string> FitOutputsToClasses(int classes, std::span<const std::string> overrides,
                                          RunConfig* config);

}  // namespace ringtail

#endif  // RINGTAIL_APPS_CONFIG_CLASS_OUTPUTS_H_
