// The optimizer of a server: the config's, with less momentum where asynchrony has some of its own
// (dist/parameter_server/momentum_correction.h).
//
//   SGD, momentum 0.9, 4 workers of equal speed, every push an update:  0.6, and 4 times the rate
//   the same, weights pulled a gradient ahead (overlap):                0.2, and 8 times the rate
//
// With SGD a gradient moves the weights by rate / (1 - momentum) in all: the rate grows as the
// momentum falls, so that this stays. LARS and Muon take steps whose length does not depend on it.
// Nothing changes if all wait for all, or if the rule is taken as published.
// Thread-safety: functions without state.
#ifndef RINGTAIL_APPS_PARAMETER_SERVER_SERVER_OPTIMIZER_H_
#define RINGTAIL_APPS_PARAMETER_SERVER_SERVER_OPTIMIZER_H_

#include "core/status.h"
#include "dist/parameter_server/asynchronous_rule.h"
#include "dist/parameter_server/parameter_server.pb.h"
#include "optim/optim.pb.h"

namespace ringtail {

// `workers`: at the start. Of SGD, LARS and Muon; Adam and LAMB stay as they are.
OptimConfig ServerOptimizer(const OptimConfig& optim, const AsynchronousConfig& config,
                            const AsynchronousRule& rule, int workers);

// 1 for Adam and LAMB, which always have some.
double MomentumOf(const OptimConfig& optim);

// Whether a smaller gradient moves the weights as far: LARS, LAMB, Muon, Adam. Then what late
// gradients count must be the learning rate's.
bool StepsHaveTheirOwnLength(const OptimConfig& optim);

// InvalidArgument if both the rule and the optimizer have momentum.
Status CheckServerOptimizer(const AsynchronousRule& rule, const OptimConfig& optim);

}  // namespace ringtail

#endif  // RINGTAIL_APPS_PARAMETER_SERVER_SERVER_OPTIMIZER_H_
