// Batches in proportion to speeds: so that a fast rank and a slow one finish a step together.
//
//   speeds   212    105        images/s
//   shares   42.8   21.2       of 64
//   batches  43     21         largest remainder: every share rounded down, and what is left over to
//                              those that lost most
//
// Every rank computes the table for itself from the speeds of all, so it is a pure function.
//
// Speeds within kSameSpeed of one another count as equal, because they are measured: between ranks
// of one kind the difference is noise, and batches that follow noise are others in every run. With
// it a step takes at most about half of kSameSpeed longer than it would without.
// Source: the method of largest remainders (Hamilton's), as parliaments use it.
// Thread-safety: functions without state. Cost: N^2 for N ranks at worst, N log N as a rule.
#ifndef RINGTAIL_APPS_TRAINER_DIVISION_PROPORTIONAL_BATCHES_H_
#define RINGTAIL_APPS_TRAINER_DIVISION_PROPORTIONAL_BATCHES_H_

#include <cstdint>
#include <span>
#include <vector>

namespace ringtail {

// Of the faster one.
inline constexpr double kSameSpeed = 0.1;

// By rank: each has the mean of those that count as equal with it, which are the ranks within
// kSameSpeed of the fastest, then those within kSameSpeed of the fastest that is left, and so on.
std::vector<double> EvenedSpeeds(std::span<const double> speeds);

// By rank: multiples of `unit`, each at least one, that add up to `total`, which is a multiple of
// `unit` and at least one for each rank. Speeds are finite and above 0. Of equal ranks the first
// ones have what cannot be divided.
std::vector<int64_t> ProportionalBatches(std::span<const double> speeds, int64_t total,
                                         int64_t unit = 1);

}  // namespace ringtail

#endif  // RINGTAIL_APPS_TRAINER_DIVISION_PROPORTIONAL_BATCHES_H_
