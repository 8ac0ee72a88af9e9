#include "dist/collectives/size_table.h"

#include <fmt/format.h>

#include <charconv>
#include <limits>

namespace ringtail {
namespace {

constexpr int64_t kNoLimit = std::numeric_limits<int64_t>::max();

class SizeTableParser {
 public:
  explicit SizeTableParser(std::string_view text) : text_(text) {}

  StatusOr<std::vector<SizeTableEntry>> Parse() {
    std::vector<SizeTableEntry> entries;
    int64_t begins = 0;  // where the next entry must begin
    while (true) {
      const size_t start = at_;
      SizeTableEntry entry;
      RT_RETURN_IF_ERROR(ParseAlgorithm(&entry));
      const size_t from_at = at_;
      RT_RETURN_IF_ERROR(ParseBytes(&entry.from_bytes));
      if (entry.from_bytes != begins) {
        return Error(from_at, fmt::format("this entry must begin at {}, {}, not at {}", begins,
                                          entries.empty() ? "as the first one"
                                                          : "where the one before it ends",
                                          entry.from_bytes));
      }
      if (!Take('-')) return Error(at_, "expected '-' between two numbers of bytes");
      const size_t to_at = at_;
      const bool open = at_ == text_.size() || text_[at_] == ';';
      entry.to_bytes = kNoLimit;
      if (!open) RT_RETURN_IF_ERROR(ParseBytes(&entry.to_bytes));
      if (entry.to_bytes <= entry.from_bytes) {
        return Error(to_at, fmt::format("{} bytes is not more than {}, where this entry begins",
                                        entry.to_bytes, entry.from_bytes));
      }
      entry.text = text_.substr(start, at_ - start);
      begins = entry.to_bytes;
      entries.push_back(std::move(entry));
      if (at_ == text_.size()) {
        if (open) return entries;
        return Error(to_at, fmt::format("the last entry must be open, as in 'ring:{}-'",
                                        entries.back().from_bytes));
      }
      if (!Take(';')) return Error(at_, "expected ';' or the end");
      if (open) return Error(to_at, "only the last entry may be open: give a number of bytes");
    }
  }

 private:
  Status Error(size_t at, std::string_view what) const {
    return InvalidArgument(fmt::format("size table '{}', column {}: {}", text_, at + 1, what));
  }

  bool Take(char c) {
    if (at_ == text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }

  Status ParseAlgorithm(SizeTableEntry* entry) {
    const size_t colon = std::min(text_.find(':', at_), text_.size());
    const auto found = FindAllreduce(text_.substr(at_, colon - at_));
    if (!found.ok()) return Error(at_, found.status().message());
    entry->algorithm = *found;
    at_ = colon;
    if (!Take(':')) return Error(at_, "expected ':' after the name");
    return OkStatus();
  }

  Status ParseBytes(int64_t* bytes) {
    const size_t end = std::min(text_.find_first_not_of("0123456789", at_), text_.size());
    if (end == at_) return Error(at_, "expected a number of bytes");
    const auto [stop, error] = std::from_chars(text_.data() + at_, text_.data() + end, *bytes);
    if (error != std::errc()) return Error(at_, "a number of bytes beyond 2^63");
    at_ = end;
    return OkStatus();
  }

  const std::string_view text_;
  size_t at_ = 0;
};

}  // namespace

StatusOr<std::vector<SizeTableEntry>> ParseSizeTable(std::string_view text) {
  return SizeTableParser(text).Parse();
}

}  // namespace ringtail
