#include "dist/trace/world_trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <utility>

#include "core/storage/file.h"
#include "dist/wire_record.h"

namespace ringtail {
namespace {

constexpr std::chrono::seconds kTimeLimit{60};
// A text comes in parts, so that no memory is allocated for what a rank only claims to send.
constexpr uint64_t kPartBytes = uint64_t{4} << 20;
constexpr uint64_t kMaxTextBytes = uint64_t{4} << 30;
// Before the text: its bytes, dropped spans, clock error in ns.
constexpr size_t kHeadBytes = 3 * sizeof(uint64_t);

}  // namespace

StatusOr<WorldTrace> WorldTrace::Start(Transport* transport) {
  auto messages = std::make_unique<WaitingMessages>(transport, kTimeLimit);
  RT_ASSIGN_OR_RETURN(const ClockOffset begin,
                      MeasureClockOffset(messages.get(), internal::TraceClockNs));
  StartTrace(transport->rank());
  return WorldTrace(std::move(messages), begin);
}

// Rank 0 tells all when its trace began, by its own clock.
StatusOr<int64_t> WorldTrace::OriginOfRankZero() {
  int64_t origin = TraceOriginNs();
  const auto bytes = std::as_writable_bytes(std::span(&origin, 1));
  if (messages_->rank() != 0) {
    RT_RETURN_IF_ERROR(messages_->Receive(0, bytes));
    if (origin < 0 || origin > kLatestTimeNs) return DataLoss("rank 0's trace has no begin");
    return origin;
  }
  for (int rank = 1; rank < messages_->world_size(); ++rank) {
    const Status sent = messages_->Send(rank, bytes);
    if (!sent.ok() && !messages_->Lost(rank)) return sent;
  }
  return origin;
}

Status WorldTrace::Finish(const std::string& path, std::string_view process_name) {
  StopTrace();
  RT_ASSIGN_OR_RETURN(const ClockOffset end,
                      MeasureClockOffset(messages_.get(), internal::TraceClockNs));
  RT_ASSIGN_OR_RETURN(const int64_t origin, OriginOfRankZero());
  const ClockMap map(begin_, end);
  RankTrace own = {
      .recorded = TakeTrace(process_name, {.origin_ns = map.TimeHere(origin), .rate = map.rate()}),
      .clock_error_ns = map.error_ns()};
  if (messages_->rank() != 0) return SendRankTrace(messages_.get(), own);

  RankTrace all = std::move(own);
  for (int rank = 1; rank < messages_->world_size(); ++rank) {
    const StatusOr<RankTrace> other = ReceiveRankTrace(messages_.get(), rank);
    if (!other.ok() && messages_->Lost(rank)) continue;
    if (!other.ok()) return other.status();
    all.recorded.events += ",\n";
    all.recorded.events += other->recorded.events;
    all.recorded.dropped_spans += other->recorded.dropped_spans;
    all.clock_error_ns = std::max(all.clock_error_ns, other->clock_error_ns);
  }
  const std::string other_data =
      fmt::format("\"dropped_spans\":{},\"clock_error_us\":{:.3f}", all.recorded.dropped_spans,
                  static_cast<double>(all.clock_error_ns) / 1e3);
  return WriteFileAtomic(path, TraceJson(all.recorded.events, other_data))
      .Annotate("writing the trace of all ranks");
}

Status SendRankTrace(WaitingMessages* messages, const RankTrace& trace) {
  const std::span<const std::byte> text = std::as_bytes(std::span(trace.recorded.events));
  std::array<std::byte, kHeadBytes> head;
  WireWriter(head)
      .Put(uint64_t{text.size()})
      .Put(uint64_t{trace.recorded.dropped_spans})
      .Put(static_cast<uint64_t>(trace.clock_error_ns));
  RT_RETURN_IF_ERROR(messages->Send(0, head));
  for (size_t at = 0; at < text.size(); at += kPartBytes) {
    const size_t bytes = std::min<size_t>(kPartBytes, text.size() - at);
    RT_RETURN_IF_ERROR(messages->Send(0, text.subspan(at, bytes)));
  }
  return {};
}

StatusOr<RankTrace> ReceiveRankTrace(WaitingMessages* messages, int rank) {
  std::array<std::byte, kHeadBytes> head;
  RT_RETURN_IF_ERROR(messages->Receive(rank, head));
  WireReader record(head);
  const auto bytes = record.Get<uint64_t>(), dropped_spans = record.Get<uint64_t>();
  const auto clock_error_ns = record.Get<uint64_t>();
  constexpr uint64_t kMaxError = INT64_MAX;
  if (bytes == 0 || bytes > kMaxTextBytes || clock_error_ns > kMaxError) {
    return DataLoss(fmt::format("rank {} sends a trace of {} bytes", rank, bytes));
  }
  RankTrace trace = {.recorded = {.dropped_spans = dropped_spans},
                     .clock_error_ns = static_cast<int64_t>(clock_error_ns)};
  std::string& text = trace.recorded.events;
  while (text.size() < bytes) {
    const size_t at = text.size();
    text.resize(std::min(bytes, at + kPartBytes));
    RT_RETURN_IF_ERROR(
        messages->Receive(rank, std::as_writable_bytes(std::span(text).subspan(at))));
  }
  return trace;
}

}  // namespace ringtail
