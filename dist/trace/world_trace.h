// WorldTrace: one timeline (core/trace.h) of all ranks, each a process of its own in it, with their
// clocks corrected.
//
//   RT_ASSIGN_OR_RETURN(WorldTrace trace, WorldTrace::Start(transport));       every rank
//   ... training ...
//   status = trace.Finish("run/trace.json", "rank 2 (node3)");                 every rank
//
// Before and after, each rank measures its clock against rank 0's (clock_offset.h). Each writes its
// own events by rank 0's clock, and sends the text to rank 0, which only joins the texts:
// it parses nothing. In the file, "otherData" says how many spans had no room, and by how
// much clocks may still differ ("clock_error_us"; half of the shortest round trip).
//
// Both are collectives: every rank calls them, when nothing else has to be quick. In a world that
// outlives its losses, those that are left call Finish: what is lost with a rank is not in the file.
// State: that of
// core/trace.h, one trace per process. Thread-safety: one thread.
#ifndef RINGTAIL_DIST_TRACE_WORLD_TRACE_H_
#define RINGTAIL_DIST_TRACE_WORLD_TRACE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "core/status.h"
#include "core/trace.h"
#include "dist/trace/clock_offset.h"
#include "dist/trace/waiting_messages.h"
#include "dist/transport/transport.h"

namespace ringtail {

class WorldTrace {
 public:
  // `transport` must outlive it.
  static StatusOr<WorldTrace> Start(Transport* transport);

  // `process_name`: how this rank is shown. Only rank 0 writes to `path`; if it cannot, the others
  // do not notice.
  Status Finish(const std::string& path, std::string_view process_name);

 private:
  WorldTrace(std::unique_ptr<WaitingMessages> messages, const ClockOffset& begin)
      : messages_(std::move(messages)), begin_(begin) {}

  StatusOr<int64_t> OriginOfRankZero();

  std::unique_ptr<WaitingMessages> messages_;
  ClockOffset begin_;
};

// One rank's part of the trace, as it goes to rank 0.
struct RankTrace {
  RecordedTrace recorded;
  int64_t clock_error_ns = 0;
};
Status SendRankTrace(WaitingMessages* messages, const RankTrace& trace);
StatusOr<RankTrace> ReceiveRankTrace(WaitingMessages* messages, int rank);

}  // namespace ringtail

#endif  // RINGTAIL_DIST_TRACE_WORLD_TRACE_H_
