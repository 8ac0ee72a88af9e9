// Batches in proportion to speeds, so that a fast rank and a slow one finish a step together.
//
//   speeds   212    105        images/s
//   shares   42.8   21.2       of 64
//   batches  43     21         largest remainder: every share is rounded down, and the remaining
//                              images go to the ranks that lost most
//
// Every rank computes the table from the speeds of all, so it is a pure function.
//
// Speeds within kSameSpeed of one another count as equal, because they are measured: between ranks
// of one kind the difference is noise, and batches that follow noise would differ in every run.
// This tolerance makes a step at most about half of kSameSpeed longer.
// Source: the method of largest remainders (Hamilton's), as parliaments use it.
// Thread-safety: functions without state. Cost: N^2 for N ranks in the worst case, N log N
// normally.
#ifndef RINGTAIL_APPS_TRAINER_DIVISION_PROPORTIONAL_BATCHES_H_
#define RINGTAIL_APPS_TRAINER_DIVISION_PROPORTIONAL_BATCHES_H_

#include <cstdint>
#include <span>
#include <vector>

namespace ringtail {

// Tolerance, relative to the faster rank.
inline constexpr double kSameSpeed = 0.1;

// By rank: the mean speed of the ranks that count as equal with it. These are the ranks within
// kSameSpeed of the fastest, then those within kSameSpeed of the fastest remaining, and so on.
std::vector<double> EvenedSpeeds(std::span<const double> speeds);

// By rank: positive multiples of `unit` that add up to `total`. `total` is a multiple of `unit` and
// at least `unit` times the number of ranks; speeds are finite and above 0. Among equal ranks the
// first ones get what cannot be divided.
std::vector<int64_t> ProportionalBatches(std::span<const double> speeds, int64_t total,
                                         int64_t unit = 1);

}  // namespace ringtail

#endif  // RINGTAIL_APPS_TRAINER_DIVISION_PROPORTIONAL_BATCHES_H_
