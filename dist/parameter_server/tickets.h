// Tickets: which worker computes with which images, so that each is used exactly once, whichever
// of them dies.
//
//   rows of the run      0 ........ 99 | 100 ....... 199 | ...    epoch = row / rows_per_epoch
//   Take(A, 8)           A: 0..7
//   Take(B, 8)           B: 8..15
//   A dies               0..7 are back
//   Take(B, 8)           B: 0..7        what is back comes first, the lowest row first
//   B's push is refused  GiveBack: 8..15 are back
//
// A row is a position in the epoch's order of images (data/sampler.h), not an image. A ticket does
// not reach across the end of an epoch, and may have fewer rows than were asked for. The next
// epoch's rows are handed out while some of the last are still under way: no worker waits at an
// epoch's end. A worker's push counts only if Holds(worker, ticket): what arrives of a worker that
// was removed must not, since others have its rows.
// Thread-safety: none. Cost: the logarithm of the number of tickets under way.
#ifndef RINGTAIL_DIST_PARAMETER_SERVER_TICKETS_H_
#define RINGTAIL_DIST_PARAMETER_SERVER_TICKETS_H_

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "core/status.h"

namespace ringtail {

struct Ticket {
  int64_t first = 0, rows = 0;  // of the run
  int64_t end() const { return first + rows; }
  bool operator==(const Ticket&) const = default;
};

class Tickets {
 public:
  // Both above 0; the run ends within an epoch if total_rows is no multiple.
  Tickets(int64_t rows_per_epoch, int64_t total_rows);
  // Where another run's tickets were: all rows before `next` are used, except `unused`.
  // InvalidArgument if they are not ascending, separate, and below `next`.
  static StatusOr<Tickets> Restore(int64_t rows_per_epoch, int64_t total_rows, int64_t next,
                                   const std::vector<Ticket>& unused);

  // From now on no row from `end` on is handed out; at first all of the run are.
  void LimitTo(int64_t end);
  // 1 to `most` rows; nullopt if all that are left are under way: some may come back until
  // finished().
  std::optional<Ticket> Take(int worker, int64_t most);
  bool Holds(int worker, const Ticket& ticket) const;
  // Of a ticket that the worker holds: its gradient was taken; it was refused.
  void Use(int worker, const Ticket& ticket);
  void GiveBack(int worker, const Ticket& ticket);
  // All that it holds is back.
  void Remove(int worker);

  bool finished() const { return UsedUpTo() == total_rows_; }
  bool idle() const { return held_.empty(); }  // none is under way
  int64_t UsedUpTo() const;                    // all rows before it are used
  // For Restore; those under way count as not used.
  int64_t next() const { return next_; }
  std::vector<Ticket> Unused() const;

 private:
  struct Held {
    int worker = 0;
    int64_t rows = 0;
  };
  void PutBack(Ticket ticket);

  int64_t rows_per_epoch_, total_rows_;
  int64_t end_ = total_rows_;
  int64_t next_ = 0;                 // never handed out from here on
  std::map<int64_t, Held> held_;     // by first row
  std::map<int64_t, int64_t> back_;  // rows by first row; neighbours of an epoch are joined
};

}  // namespace ringtail

#endif  // RINGTAIL_DIST_PARAMETER_SERVER_TICKETS_H_
