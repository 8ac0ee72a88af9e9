// ExchangeJobs: what the communication thread of a rank does in an exchange, bucket by bucket, as
// CompressedReducer and DenseReducer do it:
//
//   dense bucket        allreduce of its range, gaps included
//   coded bucket        pack sketches, allreduce (dense layers and sketches together), its second
//                       round; encode, allgather, decode (gathered layers); encode, all-to-all,
//                       add up, allgather, decode (sharded layers)
//
// Thread-safety: one thread, because of the prices. Errors: none after Create.
#ifndef RINGTAIL_DIST_PLANNER_EXCHANGE_JOBS_H_
#define RINGTAIL_DIST_PLANNER_EXCHANGE_JOBS_H_

#include <cstdint>
#include <span>
#include <vector>

#include "core/parameter.h"
#include "dist/compression/layer_costs.h"
#include "dist/compression/layer_scheme.h"
#include "dist/gradients/gradient_buckets.h"
#include "dist/planner/collective_prices.h"
#include "dist/planner/overlap.h"
#include "dist/planner/planner.pb.h"

namespace ringtail {

// A scheme of the facts, made ready for all parameters. No facts: everything travels dense.
struct PlannedScheme {
  CompressionConfig config;
  std::vector<LayerScheme> layers;
  std::vector<LayerCoding> coding;
  std::vector<double> clear;  // seconds of setting a layer's sum to zero

  static PlannedScheme Dense(std::span<const Parameter> parameters);
  static PlannedScheme Of(const SchemeFacts& facts, std::span<const Parameter> parameters);
};

// Where jobs run.
struct ExchangeWorld {
  int ranks = 1;
  double cores = 1;             // of a rank
  double seconds_per_byte = 0;  // of the slowest link, for the choice of routes
  SendingCost sending;
};

// Of the communication thread of a rank with so many cores.
CommunicationWork WorkOf(const CollectivePrice& price, const SendingCost& sending, double cores);

struct ExchangeJobs {
  std::vector<CommunicationJob> buckets;  // ready at once
  std::vector<size_t> last_parameter;     // of each bucket
  double sent_bytes = 0;                  // of a rank

  double seconds() const;
};

ExchangeJobs MakeExchangeJobs(std::span<const Parameter> parameters, const PlannedScheme& scheme,
                              const BucketOptions& options, const ExchangeWorld& world,
                              CollectivePrices* prices);

// A lower bound of the seconds of all jobs, without prices: each byte that a host must receive at
// least crosses its wire, and coding is never free. (Patarasuk & Yuan 2009: 2 (H - 1) / H n.)
double LeastExchangeSeconds(std::span<const Parameter> parameters, const PlannedScheme& scheme,
                            const ExchangeWorld& world, int hosts);

}  // namespace ringtail

#endif  // RINGTAIL_DIST_PLANNER_EXCHANGE_JOBS_H_
