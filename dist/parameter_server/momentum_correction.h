// Asynchrony is momentum: while a gradient is computed and travels, the others move the weights
// in their old directions. With P pushes under way the weights move, on average, as with a momentum
// of 1 - 1/P on top of the optimizer's own (Mitliagkas, Zhang, Hadjis, Re 2016, "Asynchrony begets
// Momentum, with an Application to Deep Learning"), so that the optimizer's must be smaller:
//
//   1 - m  =  (1 - m_e) / P        m: what is wanted; m_e: what the optimizer is told
//      m_e = max(0, 1 - P (1 - m))
//
//   m = 0.9, P     1      2      4      8      10    16
//   m_e            0.9    0.8    0.6    0.2    0     0
//   m = 0.99       0.99   0.98   0.96   0.92   0.9   0.84
//
// From P = 1 / (1 - m) on there is more momentum than is wanted, whatever the optimizer does. The
// paper takes delays as exponential and the loss as quadratic. A gradient moves the weights by
// rate / (1 - m_e) in all, and so by less than without asynchrony.
// Thread-safety: pure functions.
#ifndef RINGTAIL_DIST_PARAMETER_SERVER_MOMENTUM_CORRECTION_H_
#define RINGTAIL_DIST_PARAMETER_SERVER_MOMENTUM_CORRECTION_H_

#include "dist/parameter_server/asynchronous_rule.h"

namespace ringtail {

// P of a rule with so many workers of equal speed: the groups that are under way at a time, which
// is 1 more than the mean staleness. 1 if all wait for all. `ahead`: weights are pulled a gradient
// ahead (PullsAhead), and so each worker has two under way.
double PushesUnderWay(const AsynchronousRule& rule, int workers, bool ahead);

// m_e. 0 <= momentum < 1, under_way >= 1.
double ExplicitMomentum(double momentum, double under_way);

}  // namespace ringtail

#endif  // RINGTAIL_DIST_PARAMETER_SERVER_MOMENTUM_CORRECTION_H_
