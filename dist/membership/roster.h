// Roster: which ranks have come, whether they fit together, and which are missing. The rendezvous
// keeps one; it knows nothing of sockets.
//
// A disagreement is an error in how the job was started, and ends it for all; the sentence names
// both ranks and both values. Rank 0's facts are what the others are compared with.
//
// Where ranks listen for each other's data. Each at its own end of its connection to rank 0: that
// address is one that works. But a rank on rank 0's own machine may have come through loopback,
// where ranks of other machines cannot reach it; then it takes the address by which those have
// reached rank 0:
//
//     own end of the connection   all like that   others from other machines
//     10.0.0.7                    10.0.0.7        10.0.0.7
//     127.0.0.1                   127.0.0.1       what the first of those others has dialled
//
// Thread-safety: none.
#ifndef RINGTAIL_DIST_MEMBERSHIP_ROSTER_H_
#define RINGTAIL_DIST_MEMBERSHIP_ROSTER_H_

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "core/status.h"
#include "dist/membership/identity/rank_facts.h"

namespace ringtail {

class Roster {
 public:
  // `reference`: the facts of rank 0; they need not have come yet.
  explicit Roster(RankFacts reference);

  int world_size() const { return reference_.world_size; }

  // Takes a rank in. An error is one that ends the job: another world size, a fingerprint that
  // differs, a number that another process has. A rank that comes again (same instance) replaces
  // itself.
  Status Add(const RankFacts& facts);
  // The rank has gone again, if it is still that instance.
  void Remove(const RankFacts& facts);

  bool Complete() const { return here_ == world_size(); }
  // "ranks 2, 3 of 4 have not come within 30 s; here are 0 (node1), 1 (node1)"
  Status Missing(std::chrono::milliseconds waited) const;
  const RankFacts* Find(int rank) const;  // nullptr: not here

  // Where `rank` is to listen, given those that are here; final once all are.
  std::string ListenAt(int rank) const;
  // Where it does; from then on the world may know it.
  void SetListening(int rank, std::string address);
  bool AllListening() const;

  WorldTable Table(uint32_t generation, std::string salt) const;  // once all are listening

 private:
  struct Entry {
    std::optional<RankFacts> facts;
    std::optional<std::string> address;
    std::string gone;  // "node2, pid 5", if it has been here
  };

  const RankFacts reference_;
  std::vector<Entry> ranks_;
  int here_ = 0;
};

}  // namespace ringtail

#endif  // RINGTAIL_DIST_MEMBERSHIP_ROSTER_H_
