// The published rules, as rows of the four choices of asynchronous_rule.h:
//
//   row              admission          update of        weight                    compensation
//   SYNCHRONOUS      bound 0            all              1                         none
//   ASYNCHRONOUS     none               1 push           1                         none
//   SOFT_SYNC        none               1/1 of workers   1 / max(1, tau)           none
//   STALE_SYNC       bound 3            1 push           1                         none
//   ADA_DELAY        none               1 push           1 / (1 + k sqrt(t+tau))   none
//   DC_CONSTANT      none               1 push           1                         constant 0.04
//   DC_ADAPTIVE      none               1 push           1                         adaptive 2, 0.95
//   RINGMASTER       tau < R            1 push           1                         none
//   GAP_AWARE        none               1 push           gap                       none
//   DANA             none               1 push           1                         momentum 0.9
//   BACKUP_WORKERS   bound 0, tau < 1   all but 1        1                         none
//
// Where a paper has no value of its own for k or R, the row has 0, and the config must say it.
// Sources: Dean et al. 2012, "Large Scale Distributed Deep Networks"; Zhang et al. 2016,
// "Staleness-aware Async-SGD"; Ho et al. 2013, "More Effective Distributed ML via a Stale
// Synchronous Parallel Parameter Server"; Sra et al. 2016, "AdaDelay"; Zheng et al. 2017,
// "Asynchronous Stochastic Gradient Descent with Delay Compensation"; Maranjyan et al. 2025,
// "Ringmaster ASGD"; Barkai et al. 2020, "Gap-Aware Mitigation of Gradient Staleness"; Hakimi et
// al. 2019, "Taming Momentum in a Distributed Asynchronous Environment"; Chen et al. 2016,
// "Revisiting Distributed Synchronous SGD".
// Thread-safety: functions without state.
#ifndef RINGTAIL_DIST_PARAMETER_SERVER_PRESETS_H_
#define RINGTAIL_DIST_PARAMETER_SERVER_PRESETS_H_

#include "dist/parameter_server/asynchronous_rule.h"
#include "dist/parameter_server/parameter_server.pb.h"

namespace ringtail {

// The row of a rule, which is not NONE.
AsynchronousRule PublishedRule(AsynchronousConfig::Rule rule);

// The row with what keeps it from diverging, where the paper has nothing (parameter_server.proto,
// as_published).
AsynchronousRule SafeRule(AsynchronousConfig::Rule rule);

}  // namespace ringtail

#endif  // RINGTAIL_DIST_PARAMETER_SERVER_PRESETS_H_
