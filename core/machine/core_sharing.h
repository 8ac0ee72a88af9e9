// CoreSharing: whether other programs use this process's cores, judged from what the kernel counts.
//
//   delay    how long a compute thread was ready to run, but another one had its core
//   others   how long the cores worked for other processes (or the hypervisor took them away)
//
// Compute threads that are delayed by more than kDelayed of the last kMemory should not spin while they
// wait for each other (core/short_spin.h), whoever delays them: another program, or this one's own
// loader. They may spin again after kCalm without it. Only what goes to others is worth telling, and
// once is enough.
// Thread-safety: none. Cost: a few additions.
#ifndef RINGTAIL_CORE_MACHINE_CORE_SHARING_H_
#define RINGTAIL_CORE_MACHINE_CORE_SHARING_H_

#include <optional>
#include <string>

namespace ringtail {

class CoreSharing {
 public:
  static constexpr double kDelayed = 0.1;       // of the time, the thread that is delayed most
  static constexpr double kMemory = 0.25;       // seconds; what was before counts less and less
  static constexpr double kCalm = 1.0;          // seconds
  static constexpr double kNoticeAfter = 10.0;  // seconds
  static constexpr double kNoticeShare = 0.1;   // of the cores' time

  // What has happened since the Update before; all in seconds.
  struct Use {
    double elapsed = 0;
    double delay = 0;   // of the compute thread that was delayed most
    double others = 0;  // sum over the cores
  };

  explicit CoreSharing(int cores) : cores_(cores) {}

  void Update(const Use& use);
  bool delayed() const { return delayed_; }
  // Once, when over kNoticeAfter others have taken kNoticeShare: "the cores are shared: ...".
  std::optional<std::string> Notice();

 private:
  const int cores_;
  bool delayed_ = false;
  double recent_delay_ = 0;  // fraction of the time, of the last kMemory
  double calm_ = kCalm;      // seconds since a compute thread was delayed
  Use window_;               // since it was last looked at as a whole
  std::optional<std::string> notice_;
  bool told_ = false;
};

}  // namespace ringtail

#endif  // RINGTAIL_CORE_MACHINE_CORE_SHARING_H_
