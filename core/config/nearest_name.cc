#include "core/config/nearest_name.h"

#include <algorithm>
#include <cctype>
#include <numeric>

namespace ringtail {
namespace {

constexpr size_t kMaxWordBytes = 64;    // bounds the quadratic cost; longer names are not typed
constexpr size_t kMinPrefixBytes = 3;   // "conv" stands for "convolution"
constexpr size_t kBytesPerMistake = 3;  // one mistake in three letters is a typing error

std::string Lower(std::string_view text) {
  std::string lower(text);
  std::ranges::transform(lower, lower.begin(),
                         [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return lower;
}

// Optimal string alignment: insertions, deletions, substitutions, swaps of neighbours.
size_t EditDistance(std::string_view a, std::string_view b) {
  std::vector<size_t> before_last(b.size() + 1), last(b.size() + 1), row(b.size() + 1);
  std::iota(last.begin(), last.end(), size_t{0});
  for (size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      row[j] =
          std::min({last[j] + 1, row[j - 1] + 1, last[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1)});
      const bool swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      if (swapped) row[j] = std::min(row[j], before_last[j - 2] + 1);
    }
    before_last.swap(last);
    last.swap(row);
  }
  return last[b.size()];
}

// The only candidate that starts with `word`, or "".
std::string OnlyCompletion(std::string_view word, const std::vector<std::string>& candidates) {
  if (word.size() < kMinPrefixBytes) return "";
  const auto begins = [word](const std::string& c) { return c.starts_with(word); };
  const auto first = std::find_if(candidates.begin(), candidates.end(), begins);
  if (first == candidates.end()) return "";
  return std::any_of(first + 1, candidates.end(), begins) ? "" : *first;
}

}  // namespace

std::string NearestName(std::string_view word, const std::vector<std::string>& candidates) {
  if (word.size() > kMaxWordBytes) return "";
  const std::string lower = Lower(word);
  size_t smallest = std::max<size_t>(1, word.size() / kBytesPerMistake) + 1;
  std::string nearest;
  for (const std::string& candidate : candidates) {
    if (candidate.size() > kMaxWordBytes || candidate.size() <= 1) continue;
    const size_t distance = EditDistance(lower, Lower(candidate));
    if (distance < smallest) {
      smallest = distance;
      nearest = candidate;
    }
  }
  return nearest.empty() ? OnlyCompletion(word, candidates) : nearest;
}

}  // namespace ringtail
