// What was meant by flags that a verb does not have: fields of the config, which other programs have
// as flags, and typing errors.
//
//   train --epochs 3        --set train.epochs=3
//   train --lr 0.1          --set optim.learning_rate=0.1      a synonym
//   train --confg lenet     --config
//
// Thread-safety: a function without state.
#ifndef RINGTAIL_APPS_HELP_FLAG_HINT_H_
#define RINGTAIL_APPS_HELP_FLAG_HINT_H_

#include <string>
#include <string_view>
#include <vector>

#include "apps/help/verb_flags.h"

namespace ringtail {

// `words`: those that the verb does not know, in their order. Of the first flag among them what is
// above; "" if nothing is like it.
std::string FlagHint(const std::vector<std::string>& words, const VerbInfo& verb);

// The field that a flag of another program would be here, as a path for --set: "train.batch" for
// "batch-size"; "" if there is none.
std::string FieldOfFlag(std::string_view name);

}  // namespace ringtail

#endif  // RINGTAIL_APPS_HELP_FLAG_HINT_H_
