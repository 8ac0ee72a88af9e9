// ElementHistory: for every element of an array, which operation wrote it last, and which have read
// it since. Tells a new operation which others it has to wait for.
//
// Kept for ranges, not for elements: pieces that begin and end where operations did.
// Thread-safety: none. Cost: O(log pieces + pieces touched) for each call.
#ifndef RINGTAIL_DIST_COLLECTIVES_ELEMENT_HISTORY_H_
#define RINGTAIL_DIST_COLLECTIVES_ELEMENT_HISTORY_H_

#include <cstdint>
#include <map>
#include <vector>

#include "dist/collectives/plan.h"

namespace ringtail {

class ElementHistory {
 public:
  explicit ElementHistory(int64_t count) { pieces_[0].end = count; }

  // `operation` reads, or writes, the elements of `range` (within the array). Returns the
  // operations that it has to wait for, ascending. Of a chain of them only the last: a writer waits
  // for the readers, and they for the writer before.
  std::vector<int> Read(int operation, ElementRange range);
  std::vector<int> Write(int operation, ElementRange range);

 private:
  static constexpr int kNobody = -1;
  struct Piece {
    int64_t end = 0;
    int writer = kNobody;
    std::vector<int> readers;  // since then
  };
  using Pieces = std::map<int64_t, Piece>;  // by first element; they cover the array

  // The piece that begins at `offset`, cut from another if need be; end() at the array's end.
  Pieces::iterator PieceAt(int64_t offset);

  Pieces pieces_;
};

}  // namespace ringtail

#endif  // RINGTAIL_DIST_COLLECTIVES_ELEMENT_HISTORY_H_
