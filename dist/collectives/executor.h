// Executor: runs a schedule (dist/collectives/schedule.h) on an array, over a transport. It blocks
// its thread, the communication thread, until the collective has ended on this rank.
//
//   ready send            -> transport reads the array itself
//   ready receive-copy    -> transport writes into the array itself
//   ready receive-reduce  -> transport adds to the array itself
//   other receive-reduce  -> transport writes into a slot of the staging area -> added to the
//                            array, when it is this sum's turn
//
// All operations that are ready are under way at once; the thread takes whichever completes first,
// and starts those that waited for it. Only staging is limited: its slots go to receives in the
// order of the schedule. As each of these waits only for earlier ones, the first that holds a slot
// can always finish, and no number of slots is too small; one that gets none until it is ready
// needs none.
//
// Errors end the transport (Transport::Abort), and name cause, operation, rank, bytes and peer:
//   "lost ... (allreduce, ring 17 on rank 0, round 2 of 6, receiving 65536 bytes from rank 3)"
// DeadlineExceeded if nothing completes, and nothing moves, for stall_timeout. When Run returns,
// the transport no longer touches the array, error or not; after an error its content is undefined.
//
// Two collectives may be in flight between the same ranks if their sequence numbers differ, with an
// executor and a thread for each. Thread-safety: one thread at a time.
#ifndef RINGTAIL_DIST_COLLECTIVES_EXECUTOR_H_
#define RINGTAIL_DIST_COLLECTIVES_EXECUTOR_H_

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>

#include "core/aligned_buffer.h"
#include "core/check.h"
#include "core/status.h"
#include "dist/collectives/schedule.h"
#include "dist/transport/transport.h"

namespace ringtail {

struct ExecutorOptions {
  // Memory for messages that are to be added; at least one segment. It should cover the bytes on
  // their way to this rank, and stay in the cache.
  size_t staging_bytes = size_t{4} << 20;
  // The longest time in which no operation at all completes, and `moved` stays as it is.
  std::chrono::milliseconds stall_timeout{60'000};
  // A count that grows while data moves anywhere in the world: on a slow wire one message, or those
  // that others have to exchange first, may take longer. None: only completions here count.
  std::function<uint64_t()> moved;
};

class Executor {
 public:
  // `transport` must outlive the executor.
  Executor(Transport* transport, const ExecutorOptions& options);

  // `sequence` is the collective's number, the same on every rank and used once. `array` has the
  // type and count that the schedule was made for.
  template <typename T>
  Status Run(const Schedule& schedule, uint64_t sequence, std::span<T> array) {
    RT_CHECK(schedule.collective().type == ElementTypeOf<T>::kValue &&
                 schedule.collective().count == static_cast<int64_t>(array.size()),
             "the array is the one that the schedule was made for");
    return RunOnBytes(schedule, sequence, reinterpret_cast<std::byte*>(array.data()));
  }

 private:
  Status RunOnBytes(const Schedule& schedule, uint64_t sequence, std::byte* array);

  Transport* const transport_;
  const ExecutorOptions options_;
  AlignedBuffer staging_;
};

}  // namespace ringtail

#endif  // RINGTAIL_DIST_COLLECTIVES_EXECUTOR_H_
