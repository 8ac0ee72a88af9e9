#include "dist/collectives/element_history.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace ringtail {
namespace {

std::vector<int> SortedWithoutRepeats(std::vector<int> numbers) {
  std::sort(numbers.begin(), numbers.end());
  numbers.erase(std::unique(numbers.begin(), numbers.end()), numbers.end());
  return numbers;
}

}  // namespace

ElementHistory::Pieces::iterator ElementHistory::PieceAt(int64_t offset) {
  const auto next = pieces_.lower_bound(offset);
  if (next != pieces_.end() && next->first == offset) return next;
  const auto around = std::prev(next);
  if (offset == around->second.end) return next;
  Piece tail = around->second;
  around->second.end = offset;
  return pieces_.emplace_hint(next, offset, std::move(tail));
}

std::vector<int> ElementHistory::Read(int operation, ElementRange range) {
  std::vector<int> waits_for;
  const auto last = PieceAt(range.end());
  for (auto it = PieceAt(range.offset); it != last; ++it) {
    if (it->second.writer != kNobody) waits_for.push_back(it->second.writer);
    it->second.readers.push_back(operation);
  }
  return SortedWithoutRepeats(std::move(waits_for));
}

std::vector<int> ElementHistory::Write(int operation, ElementRange range) {
  std::vector<int> waits_for;
  const auto last = PieceAt(range.end());
  const auto first = PieceAt(range.offset);
  for (auto it = first; it != last; ++it) {
    const Piece& piece = it->second;
    waits_for.insert(waits_for.end(), piece.readers.begin(), piece.readers.end());
    if (piece.readers.empty() && piece.writer != kNobody) waits_for.push_back(piece.writer);
  }
  // One piece from here on.
  first->second = {.end = range.end(), .writer = operation};
  pieces_.erase(std::next(first), last);
  return SortedWithoutRepeats(std::move(waits_for));
}

}  // namespace ringtail
