// How long ranks wait for one another.
//
// SlowestOf: how much longer than the mean the slowest of n ranks takes, in standard deviations, if
// their times are independent and normal: the expectation of the largest of n. All that wait for one
// another wait so long (Dutta et al. 2018, "Slow and Stale Gradients Can Win the Race").
//
//   n       1    2     4     8     16    32
//           0  0.56  1.03  1.42  1.77  2.07
//
// DeviationOfRanks: the deviation with which that formula gives what ranks would have waited for the slowest of
// them, the median over steps, each rank's times being shares of its own median: what slows all ranks at once
// (another program on their machine) lets none of them wait, and a host that is always slower is not a
// matter of chance. Of two ranks that median is 15 % below the mean of normal times, of four and more less.
//
// DelayOfRounds: by how much a round of messages between n ranks is delayed, in means of the delay of a
// message, if each rank waits in each round for itself and for one other, and delays are exponential:
//
//   rank r ends round k at  max(end[r][k - 1], end[r - 1][k - 1]) + delay
//
// 1.5 for two; of a long ring 2, since last-passage percolation has that limit (Rost 1981, "Non-equilibrium
// behaviour of a many particle process"). Between them 2 - 1 / n is right to 2 %; recursive doubling, whose
// partners change, has 2.1 with 16.
//
// Cost: some 10 us. Thread-safety: pure functions.
#ifndef RINGTAIL_DIST_PLANNER_SLOWEST_OF_H_
#define RINGTAIL_DIST_PLANNER_SLOWEST_OF_H_

#include <cstdint>
#include <span>
#include <vector>

namespace ringtail {

// n >= 1
double SlowestOf(int64_t n);
// `times`: positive, of each rank as many, step by step. A share of a rank's time; 0 of one rank, or of no steps.
double DeviationOfRanks(std::span<const std::vector<double>> times);
double DelayOfRounds(int64_t n);

}  // namespace ringtail

#endif  // RINGTAIL_DIST_PLANNER_SLOWEST_OF_H_
