// CoreSharing: decides from the kernel's counters whether other programs use this process's cores.
//
//   delay    time in which a compute thread was ready to run, but another thread had its core
//   others   time in which the cores worked for other processes (or the hypervisor took them)
//   held     time in which the CPU quota of this process's control group kept its threads from
//            running
//
// Compute threads that are delayed for more than kDelayed of the last kMemory should not spin while
// they wait for each other (core/machine/short_spin.h), whatever delays them: another program, or
// this program's own loader. They may spin again after kCalm without delays. Delays beside
// other programs are reported, and only once: as the quota's where it held threads for as long as
// kDelayed says, since other programs may then have had cores that this process could not use.
// Thread-safety: none. Cost: a few additions.
#ifndef RINGTAIL_CORE_MACHINE_CORE_SHARING_H_
#define RINGTAIL_CORE_MACHINE_CORE_SHARING_H_

#include <limits>
#include <optional>
#include <string>

namespace ringtail {

class CoreSharing {
 public:
  static constexpr double kDelayed = 0.1;       // fraction of the time; of the most delayed thread
  static constexpr double kMemory = 0.25;       // seconds; time constant of the average
  static constexpr double kCalm = 1.0;          // seconds
  static constexpr double kNoticeAfter = 10.0;  // seconds
  static constexpr double kNoticeShare = 0.1;   // fraction of the cores' time

  // Changes since the previous Update; all in seconds.
  struct Use {
    double elapsed = 0;
    double delay = 0;   // of the most delayed compute thread
    double others = 0;  // sum over the cores
    double held = 0;    // sum over the cores
  };

  // `quota`: in cores, as CgroupQuota says it.
  explicit CoreSharing(int cores, double quota = std::numeric_limits<double>::infinity())
      : cores_(cores), quota_(quota) {}

  void Update(const Use& use);
  bool delayed() const { return delayed_; }
  // Set once, when other programs took kNoticeShare over kNoticeAfter: "the cores are shared: ...",
  // or "this process may use 1.5 cores (CPU quota of its control group): ...".
  std::optional<std::string> Notice();

 private:
  std::string Reason(const Use& whole) const;

  const int cores_;
  const double quota_;
  bool delayed_ = false;
  double recent_delay_ = 0;  // fraction of the time, averaged over kMemory
  double calm_ = kCalm;      // seconds since the last delay
  Use window_;               // sums since the last decision about a notice
  std::optional<std::string> notice_;
  bool told_ = false;
};

}  // namespace ringtail

#endif  // RINGTAIL_CORE_MACHINE_CORE_SHARING_H_
