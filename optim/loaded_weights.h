// Whether a learning rate is so high that weights which were loaded are gone before they are of
// use.
//
// The measure is how far a step moves a weight tensor, as a fraction of its norm: muon and lars
// rate * trust, lamb the rate (600 images and a network of Tiny ImageNet, muon: 0.35 to 1.4 % of the
// norm in a step end within half a point, 2.8 % 2.5 points below; apps/studies/fine_tuning.md); adam
// and adamw move each weight by about the rate, of weights whose root mean square is near 0.03 in
// trained networks; sgd by the gradient times rate / (1 - momentum), for which torchvision's
// references fine-tune at 0.01 to 0.1 in all. Of layers below the head, so times layer_decay.
// Thread-safety: functions without state.
#ifndef RINGTAIL_OPTIM_LOADED_WEIGHTS_H_
#define RINGTAIL_OPTIM_LOADED_WEIGHTS_H_

#include <string>

#include "optim/optim.pb.h"

namespace ringtail {

// A sentence that says what to set; empty: the rate is low enough. `config`: after batch scaling;
// `configured_rate`: before it, so what a new rate takes the place of.
std::string WarnOfErasing(const OptimConfig& config, double configured_rate);
// The same of any run: a rate that was meant for another rule. Adam moves every weight by about the
// rate in each step (Kingma and Ba 2015, section 2.1), so above 0.1 none is of use; sgd's rate of a
// batch of some hundred images is rarely above 1 with a momentum of 0.9. `configured_rate`: as above.
std::string WarnOfOtherRulesRate(const OptimConfig& config, double configured_rate);

}  // namespace ringtail

#endif  // RINGTAIL_OPTIM_LOADED_WEIGHTS_H_
