#include "apps/trainer/update/state_agreement.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

namespace ringtail {
namespace {

constexpr std::pair<const char*, uint32_t StateChecksums::*> kParts[] = {
    {"weights", &StateChecksums::weights},
    {"running statistics", &StateChecksums::statistics},
    {"optimizer state", &StateChecksums::optimizer},
    {"averaged weights", &StateChecksums::average},
    {"progress", &StateChecksums::progress},
};

std::string Names(const std::vector<int>& ranks, const char* separator,
                  const std::function<std::string(int)>& describe) {
  std::vector<std::string> names;
  names.reserve(ranks.size());
  for (const int rank : ranks) names.push_back(describe(rank));
  return fmt::format("{}", fmt::join(names, separator));
}

}  // namespace

AgreementVerdict JudgeAgreement(std::span<const StateChecksums> ranks) {
  AgreementVerdict verdict;
  for (size_t rank = 0; rank < ranks.size(); ++rank) {
    const auto same = std::ranges::find_if(verdict.groups, [&](const std::vector<int>& group) {
      return ranks[group.front()] == ranks[rank];
    });
    if (same != verdict.groups.end()) {
      same->push_back(static_cast<int>(rank));
    } else {
      verdict.groups.push_back({static_cast<int>(rank)});
    }
  }
  std::ranges::stable_sort(verdict.groups, std::ranges::greater(), &std::vector<int>::size);
  verdict.majority = 2 * verdict.groups.front().size() > ranks.size();
  const StateChecksums& right = ranks[verdict.groups.front().front()];
  for (const auto& [name, part] : kParts) {
    const bool differs = std::ranges::any_of(
        ranks, [&, part = part](const StateChecksums& r) { return r.*part != right.*part; });
    if (differs) verdict.parts.emplace_back(name);
  }
  for (size_t i = 1; verdict.majority && i < verdict.groups.size(); ++i) {
    verdict.odd.insert(verdict.odd.end(), verdict.groups[i].begin(), verdict.groups[i].end());
  }
  std::ranges::sort(verdict.odd);
  return verdict;
}

std::string DescribeDisagreement(const AgreementVerdict& verdict,
                                 const std::function<std::string(int)>& describe) {
  std::string parts;
  for (size_t i = 0; i < verdict.parts.size(); ++i) {
    if (i > 0) parts += i + 1 < verdict.parts.size() ? ", " : " and ";
    parts += verdict.parts[i];
  }
  if (verdict.majority) {
    return fmt::format("the {} of {} are not those of the other ranks", parts,
                       Names(verdict.odd, " and of ", describe));
  }
  std::vector<std::string> groups;
  groups.reserve(verdict.groups.size());
  for (const auto& group : verdict.groups) groups.push_back(Names(group, ", ", describe));
  return fmt::format("the {} of {} differ, and which of them is wrong cannot be told", parts,
                     fmt::join(groups, " and of "));
}

Status StateAgreement::Check(const StateChecksums& own) {
  RT_ASSIGN_OR_RETURN(const std::vector<StateChecksums> all, world_->Gather(own));
  const AgreementVerdict verdict = JudgeAgreement(all);
  if (verdict.agreed()) return OkStatus();
  failed_ = true;
  finding_ = DescribeDisagreement(verdict, [this](int rank) { return world_->Describe(rank); });
  std::set<int>* const wrong_before = world_->wrong_ranks();
  can_go_back_ = verdict.majority && std::ranges::none_of(verdict.odd, [&](int rank) {
                   return wrong_before->contains(rank);
                 });
  wrong_before->insert(verdict.odd.begin(), verdict.odd.end());
  // No rank may end the world before all have read the checksums; afterwards an error does not
  // matter.
  (void)world_->Barrier();
  const bool own_fault = std::ranges::count(verdict.odd, world_->rank()) > 0;
  world_->Blame(!verdict.majority ? TrainingWorld::Culprit::kUnknown
                : own_fault       ? TrainingWorld::Culprit::kThisRank
                                  : TrainingWorld::Culprit::kAnother);
  return DataLoss(
      fmt::format("{}: a fault of memory, or results that depend on the machine; {}continue with "
                  "--resume, from the last state that all agreed on",
                  finding_, verdict.majority ? "leave it out, and " : ""));
}

}  // namespace ringtail
