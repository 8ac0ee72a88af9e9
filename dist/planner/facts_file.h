// Facts of the planner as protobuf text (planner.proto): read, checked, written.
//
//   RT_ASSIGN_OR_RETURN(const PlannerFacts facts, ParseFacts(text, "facts.textproto"));
//
// After ParseFacts or CheckFacts every number is finite and in the range that planner.proto gives,
// lists fit each other, and nothing of the planner fails: so files of strangers are safe to read.
// Errors: InvalidArgument at the place in the file, with the field's name and its range.
// Thread-safety: functions without state.
#ifndef RINGTAIL_DIST_PLANNER_FACTS_FILE_H_
#define RINGTAIL_DIST_PLANNER_FACTS_FILE_H_

#include <string>
#include <string_view>

#include "core/config/config_source.h"
#include "core/status.h"
#include "dist/planner/planner.pb.h"

namespace ringtail {

inline constexpr int kMostPlannedHosts = 1024, kMostRanksPerHost = 64;

StatusOr<PlannerFacts> ParseFacts(std::string_view text, std::string_view file_name);
// `source` may be null.
Status CheckFacts(const PlannerFacts& facts, const ConfigSource* source);
// Text that ParseFacts reads as the same facts.
std::string FactsText(const PlannerFacts& facts);

}  // namespace ringtail

#endif  // RINGTAIL_DIST_PLANNER_FACTS_FILE_H_
