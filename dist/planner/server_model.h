// ServerModel: how fast workers train that do not wait for one another, with servers that hold the
// weights (dist/parameter_server/). The rates of workers and what servers and links can carry, as
// fluids:
//
//   N workers      r = 1 / step          step: computing, or its own link if that takes longer
//   a server       updates of a part     R pushes/s of all workers x U / S; computes with what is left
//   its link       out: pulls, and what its own worker pushes; in: pushes, and what that one pulls
//
//   R = min( sum of r,  what the servers' cores can do,  what the servers' links carry )
//
// for S servers on the first S of the workers, each with a part of the weights, or on ranks of their
// own. Where all wait for all a step is the sum: computing, pushes, update, pulls. All ranks are
// alike, as everywhere in the planner: that no worker waits for a slow one, which is what servers are
// for, is not in the figures; nor is what stale gradients cost in accuracy.
// Thread-safety: a function without state. Cost: a pass over the parameters.
#ifndef RINGTAIL_DIST_PLANNER_SERVER_MODEL_H_
#define RINGTAIL_DIST_PLANNER_SERVER_MODEL_H_

#include <cstdint>
#include <string>

#include "dist/parameter_server/parameter_server.pb.h"
#include "dist/planner/choice.h"
#include "dist/planner/network_facts.h"
#include "dist/planner/planner.pb.h"

namespace ringtail {

struct ServerChoice {
  int64_t batch = 1;  // images of a gradient
  int gradients_per_push = 1;
  int servers = 1;                    // the first ranks, at most all
  bool dedicated = false;             // and those compute no gradients; fewer than all
  std::string scheme = kDenseScheme;  // of pushes, one of the facts
  double bytes_per_weight = 4;        // of pulls
  bool overlap = true;                // the next weights are pulled meanwhile
  bool synchronous = false;           // all wait for all in every update
};

// `ranks`: of the job. What a config with servers means by it.
ServerChoice ServerChoiceOf(const AsynchronousConfig& config, int ranks, int64_t batch);

struct ServerPrediction {
  ServerChoice choice;
  int workers = 0;
  double images_per_s = 0;
  std::string limit;  // in words: "computing", "the links of the servers"
};
// `choice.scheme` is dense or one of the checked facts'.
ServerPrediction PredictServers(const PlannerFacts& facts, const NetworkFacts& network,
                                const ServerChoice& choice);

// "8 workers, servers on 4 of them: predicted 210 images/s, limited by the links of the servers"
std::string Describe(const ServerPrediction& prediction);

}  // namespace ringtail

#endif  // RINGTAIL_DIST_PLANNER_SERVER_MODEL_H_
