// AsynchronousRule: how gradients of many workers become updates of weights that a server holds.
// Every published rule is a row of four independent choices (presets.h has the table):
//
//   worker  pull ........ gradient of b images ........ push      tau: updates between the two
//            |                                           |
//            | Admission: who may start,                 | StalenessWeight: how much it counts
//            |   and what is too old                     | Compensation: how it is corrected
//            v                                           v
//   server  w, version t   <--- optimizer ---   Grouping: what makes one update
//
// A push belongs to version j if its worker pulled that; its staleness is tau = t - j. Gradients
// are sums over images. Rates and epochs follow the images that were applied, never versions.
// Thread-safety: a value.
#ifndef RINGTAIL_DIST_PARAMETER_SERVER_ASYNCHRONOUS_RULE_H_
#define RINGTAIL_DIST_PARAMETER_SERVER_ASYNCHRONOUS_RULE_H_

#include <cstdint>
#include <limits>
#include <string>

#include "dist/parameter_server/staleness_weight.h"

namespace ringtail {

// A worker's clock is the number of its pushes. It may start if it is at most `bound` ahead of the
// slowest (Ho et al. 2013, "More Effective Distributed ML via a Stale Synchronous Parallel
// Parameter Server"). 0: all wait for all (bulk synchronous).
struct Admission {
  static constexpr int64_t kUnbounded = std::numeric_limits<int64_t>::max();
  int64_t bound = kUnbounded;
  // A push with tau >= discard_after is thrown away (Maranjyan, Tyurin, Richtarik 2025, "Ringmaster
  // ASGD"). 0: none.
  int64_t discard_after = 0;
  bool operator==(const Admission&) const = default;
};

// Soft synchronization: the pushes of n workers, of s gradients each, make one update.
//
//   n = 1, s = 1             every gradient by itself: asynchronous SGD
//   n = 1, s = m             Downpour: a worker pushes the sum of m gradients
//   n = workers, s = 1       synchronous; with b backup workers n = workers - b
//   n = floor(workers / k)   k-softsync (Zhang et al. 2016): tau is about k
//
// Workers that are gone no longer count. Any worker may fill any of the n places, except with
// kAllWorkers, where each fills one.
struct Grouping {
  enum class By { kPushes, kSplits, kAllWorkers };
  By by = By::kPushes;
  int pushes = 1;              // kPushes: n
  int splits = 1;              // kSplits: k
  int backups = 0;             // kAllWorkers: b
  int gradients_per_push = 1;  // s, added up by the worker before it pushes

  int PushesPerUpdate(int workers) const;  // n >= 1; workers >= 0: those that are there
  bool operator==(const Grouping&) const = default;
};

// compensation.h has the formulas.
struct Compensation {
  enum class Form { kNone, kConstant, kAdaptive, kDana };
  Form form = Form::kNone;
  double strength = 0;     // kConstant, kAdaptive: lambda
  double decay = 0;        // kAdaptive: of the mean squares; kDana: the momentum
  double limit = 0;        // kConstant, kAdaptive: largest relative change of an element; 0: none
  double start_epoch = 0;  // kConstant, kAdaptive: gradients are as they are before
  bool operator==(const Compensation&) const = default;
};

struct AsynchronousRule {
  Admission admission;
  Grouping grouping;
  StalenessWeight weight;
  Compensation compensation;

  // Whether all wait for all in every update, so that no gradient is ever late.
  bool synchronous() const;
  // Whether the server needs the weights that a push was computed with.
  bool compares() const;
  // "at most 3 steps ahead of the slowest; every push is an update; weight 1 / tau"
  std::string Describe() const;
  bool operator==(const AsynchronousRule&) const = default;
};

}  // namespace ringtail

#endif  // RINGTAIL_DIST_PARAMETER_SERVER_ASYNCHRONOUS_RULE_H_
