#include "apps/trainer/same_files.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <span>
#include <sstream>
#include <string>

#include "core/machine/thread_budget.h"
#include "core/random.h"
#include "data/manifest.h"
#include "dist/collectives/plan.h"

namespace ringtail {
namespace {

constexpr int kBlocks = 256;  // the list is compared block by block

using Sizes = std::span<const int64_t>;

std::string Hash(Sizes sizes) {
  RngKey hash = RngKey(0).With(sizes.size());
  for (const int64_t size : sizes) hash = hash.With(static_cast<uint64_t>(size));
  return fmt::format("{:016x}", hash.bits());
}

Sizes Block(Sizes sizes, int block) {
  const ElementRange range = EvenPart(std::ssize(sizes), kBlocks, block);
  return sizes.subspan(range.offset, range.count);
}

// The first word (words are separated by blanks) that is not the same in all texts, and the first
// text in which it differs from the first text. Word -1 if the texts are the same.
struct Difference {
  int64_t word = -1;
  int text = 0;
  std::string first, other;  // the two words
};
Difference FirstDifference(const std::vector<std::string>& texts) {
  Difference found;
  for (int i = 1; i < static_cast<int>(texts.size()); ++i) {
    std::istringstream first(texts[0]), other(texts[i]);
    std::string a, b;
    for (int64_t word = 0; first >> a && other >> b; ++word) {
      if (found.word >= 0 && word >= found.word) break;
      if (a != b) found = {word, i, a, b};
    }
  }
  return found;
}

std::string InWords(const std::string& bytes) {
  return bytes == "-1" ? "cannot be found" : fmt::format("has {} bytes", bytes);
}

}  // namespace

Status AgreeOnFiles(const Dataset& dataset, const std::vector<int64_t>& used, int workers,
                    TrainingWorld* world) {
  RT_ASSIGN_OR_RETURN(const std::vector<int64_t> sizes,
                      FileSizes(dataset, used, workers > 0 ? workers : UsableCores()));
  RT_ASSIGN_OR_RETURN(const std::vector<std::string> hashes, world->GatherText(Hash(sizes)));
  if (FirstDifference(hashes).word < 0) return OkStatus();

  std::vector<std::string> blocks;
  blocks.reserve(kBlocks);
  for (int block = 0; block < kBlocks; ++block) blocks.push_back(Hash(Block(sizes, block)));
  RT_ASSIGN_OR_RETURN(const std::vector<std::string> all_blocks,
                      world->GatherText(fmt::format("{}", fmt::join(blocks, " "))));
  const auto block = static_cast<int>(FirstDifference(all_blocks).word);
  RT_ASSIGN_OR_RETURN(
      const std::vector<std::string> all_sizes,
      world->GatherText(fmt::format("{}", fmt::join(Block(sizes, std::max(block, 0)), " "))));
  const Difference found = FirstDifference(all_sizes);
  if (block < 0 || found.word < 0) return Internal("the sizes of files changed while compared");
  const int64_t first = Block(sizes, block).data() - sizes.data();
  return InvalidArgument(fmt::format(
      "the images are not the same on every rank: {} {} on {} and {} on {}; give every rank the "
      "same files",
      dataset.samples()[used[first + found.word]].key, InWords(found.first), world->Describe(0),
      InWords(found.other), world->Describe(found.text)));
}

}  // namespace ringtail
