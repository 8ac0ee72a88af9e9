// WorkerStatistics: running statistics of batch norm, of which each worker has its own; what is
// evaluated, and kept, is the mean of what the workers sent last.
//
//   A sends (2, 4)   mean (2, 4)
//   B sends (4, 0)   mean (3, 2)      in the order of the workers, whatever the order of arrival
//   A dies           mean (4, 0)      once another one sends
//
// Thread-safety: none. Memory: a block for each worker. Cost of Put: a pass over all blocks.
#ifndef RINGTAIL_DIST_PARAMETER_SERVER_WIRE_WORKER_STATISTICS_H_
#define RINGTAIL_DIST_PARAMETER_SERVER_WIRE_WORKER_STATISTICS_H_

#include <map>
#include <span>
#include <vector>

namespace ringtail {

class WorkerStatistics {
 public:
  // `mean` must outlive it; it stays as it is until a worker sends.
  explicit WorkerStatistics(std::span<float> mean) : mean_(mean) {}

  void Put(int worker, std::span<const float> statistics);  // as many as in the mean
  void Remove(int worker) { sent_.erase(worker); }
  std::span<const float> mean() const { return mean_; }

 private:
  const std::span<float> mean_;
  std::map<int, std::vector<float>> sent_;  // by worker, the last
};

}  // namespace ringtail

#endif  // RINGTAIL_DIST_PARAMETER_SERVER_WIRE_WORKER_STATISTICS_H_
