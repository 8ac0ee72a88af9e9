// Initializers: how a parameter starts (InitializerConfig in layers/net.proto).
//
//   normal kinds:   value = std * z, z ~ N(0, 1); std given, or std^2 = gain / fan,
//                   or std^2 = 2 / (fan_in + fan_out)
//   uniform kinds:  value ~ U[-a, a), a = sqrt(3 std^2), or a = 1 / sqrt(fan_in)
//
// Value i is a pure function of (key, i): the same for any number of threads, and on every machine
// that rounds log and cos alike.
// Thread-safety: functions without state; FillInitial runs on the compute team.
// Cost: about 20 ns per normal value and core.
// Source: Glorot & Bengio 2010, eq. 16; He et al. 2015, eq. 10; Box & Muller 1958.
#ifndef RINGTAIL_LAYERS_NET_INITIALIZER_H_
#define RINGTAIL_LAYERS_NET_INITIALIZER_H_

#include <span>

#include "core/config/field_check.h"
#include "core/random.h"
#include "core/status.h"
#include "layers/layer.h"

namespace ringtail {

// InvalidArgument, at the field, if no kind is set or a number of it is out of range.
Status ValidateInitializer(const InitializerConfig& config, const FieldCheck& fields);

// The same for the initializer of `request`, if it has one; also InvalidArgument if it scales by a
// fan that the parameter does not have (batch norm's weight has none). `fields` is the layer's.
Status ValidateInitializer(const ParameterRequest& request, const FieldCheck& fields);

// Fills `values` as `request` says, which must be valid. Of a sharded parameter they are its own
// rows: the values that these have in the whole parameter.
void FillInitial(const ParameterRequest& request, RngKey key, std::span<float> values);

}  // namespace ringtail

#endif  // RINGTAIL_LAYERS_NET_INITIALIZER_H_
