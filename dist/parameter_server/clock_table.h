// ClockTable: which worker may start its next step, by how far the others are.
//
//   bound 2, clocks    A 7   B 5   C 5        min 5
//   A                  7 - 5 <= 2: may start
//   A ticks            A 8   B 5   C 5        8 - 5 > 2: waits
//   B ticks            A 8   B 6   C 5        it moves when the last of the slowest ticks
//   C dies             A 8   B 6              min 6: A may start at once
//   D joins            A 8   B 6   D 6        at the minimum: at 0 all would wait for it
//
// With b stragglers allowed (backup workers) the bound counts from the clock that all workers but b
// have reached, and that clock takes the place of the minimum above. It never falls.
// A worker's number is not used again after it was removed: what still arrives of it must not
// count.
// Source: Ho et al. 2013, "More Effective Distributed ML via a Stale Synchronous Parallel Parameter
// Server", section 3; Chen et al. 2016, "Revisiting Distributed Synchronous SGD" (backup workers).
// Thread-safety: none. Cost: the logarithm of the number of workers, plus b.
#ifndef RINGTAIL_DIST_PARAMETER_SERVER_CLOCK_TABLE_H_
#define RINGTAIL_DIST_PARAMETER_SERVER_CLOCK_TABLE_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

namespace ringtail {

class ClockTable {
 public:
  explicit ClockTable(int64_t bound, int stragglers = 0);

  void Join(int worker);    // not there yet
  void Remove(int worker);  // nothing happens if it is not there
  // Of a worker that is there:
  void Tick(int worker);  // it has done a step
  // It has done a step for nothing: it continues where the others are, as if it had joined.
  void CatchUp(int worker);
  bool MayStart(int worker) const;
  int64_t clock(int worker) const;

  bool Has(int worker) const { return clocks_.contains(worker); }
  int64_t Min() const { return min_; }  // see above; also while no worker is there
  size_t size() const { return clocks_.size(); }
  std::vector<int> workers() const;  // ascending
  // Those whose steps the others wait for: at the minimum or behind it, ascending.
  std::vector<int> Slowest() const;

 private:
  void Move(int worker, int64_t clock);
  void Leave(int64_t clock);
  void Raise();

  const int64_t bound_;
  const int stragglers_;
  std::map<int, int64_t> clocks_;  // by worker
  std::map<int64_t, int> counts_;  // workers at each clock
  int64_t min_ = 0;
};

}  // namespace ringtail

#endif  // RINGTAIL_DIST_PARAMETER_SERVER_CLOCK_TABLE_H_
