#include "apps/bench_allreduce/timing_report.h"

#include <cstdio>
#include <nlohmann/json.hpp>

namespace ringtail {
namespace {

void PrintNow(const std::string& text) {
  std::fputs(text.c_str(), stdout);
  std::fflush(stdout);
}

}  // namespace

void TimingReport::AddNote(const std::string& note) {
  if (style_ == ReportStyle::kTable) PrintNow(note + "\n");
  if (style_ == ReportStyle::kLines) PrintNow(nlohmann::json{{"note", note}}.dump() + "\n");
}

void TimingReport::AddTiming(const AllreduceTiming& timing) {
  if (style_ == ReportStyle::kLines) PrintNow(ToJson(timing).dump() + "\n");
  if (style_ == ReportStyle::kTable) {
    if (timings_.empty()) PrintNow(TimingHeader());
    PrintNow(TimingLine(timing));
  }
  timings_.push_back(timing);
}

Status TimingReport::AddLine(std::string_view line) {
  const auto json = nlohmann::json::parse(line, nullptr, /*allow_exceptions=*/false);
  if (json.is_object() && json.contains("note") && json["note"].is_string()) {
    AddNote(json["note"]);
    return OkStatus();
  }
  RT_ASSIGN_OR_RETURN(const AllreduceTiming timing, TimingFromJson(std::string(line)));
  AddTiming(timing);
  return OkStatus();
}

void TimingReport::Finish() {
  if (style_ == ReportStyle::kJson) PrintNow(TimingsJson(timings_));
}

}  // namespace ringtail
