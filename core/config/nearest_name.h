// "Did you mean 'kernel'?": the name that a mistyped word was meant to be.
// Thread-safety: a function without state. Cost: the square of the word's length per candidate;
// words above 64 bytes are not compared.
#ifndef RINGTAIL_CORE_CONFIG_NEAREST_NAME_H_
#define RINGTAIL_CORE_CONFIG_NEAREST_NAME_H_

#include <string>
#include <string_view>
#include <vector>

namespace ringtail {

// The candidate nearest to `word` by edit distance, whose case does not count, if it is near enough to be a typing error (at
// most one mistake per three letters), else the only candidate that starts with `word`, else "".
std::string NearestName(std::string_view word, const std::vector<std::string>& candidates);

}  // namespace ringtail

#endif  // RINGTAIL_CORE_CONFIG_NEAREST_NAME_H_
