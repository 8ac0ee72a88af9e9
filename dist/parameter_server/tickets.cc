#include "dist/parameter_server/tickets.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/check.h"

namespace ringtail {

Tickets::Tickets(int64_t rows_per_epoch, int64_t total_rows)
    : rows_per_epoch_(rows_per_epoch), total_rows_(total_rows) {
  RT_CHECK(rows_per_epoch > 0 && total_rows > 0, "a run has images");
}

StatusOr<Tickets> Tickets::Restore(int64_t rows_per_epoch, int64_t total_rows, int64_t next,
                                   const std::vector<Ticket>& unused) {
  Tickets tickets(rows_per_epoch, total_rows);
  int64_t before = 0;
  for (const Ticket& ticket : unused) {
    // (By subtraction: a damaged file may hold numbers that overflow.)
    const bool fits = ticket.first >= before && ticket.first < next && ticket.rows >= 1 &&
                      ticket.rows <= next - ticket.first;
    if (!fits) {
      return InvalidArgument(
          fmt::format("tickets: {} rows from {} on are no rows before {} that "
                      "follow those before {}",
                      ticket.rows, ticket.first, next, before));
    }
    before = ticket.end();
  }
  if (next < 0 || next > total_rows) {
    return InvalidArgument(fmt::format("tickets: {} of {} rows were handed out", next, total_rows));
  }
  tickets.next_ = next;
  for (Ticket ticket : unused) {
    while (ticket.rows > 0) {  // epoch by epoch
      const int64_t left = rows_per_epoch - ticket.first % rows_per_epoch;
      const int64_t rows = std::min(ticket.rows, left);
      tickets.PutBack({ticket.first, rows});
      ticket = {ticket.first + rows, ticket.rows - rows};
    }
  }
  return tickets;
}

void Tickets::LimitTo(int64_t end) {
  RT_CHECK(end >= next_ && end <= total_rows_, "rows that were not handed out yet");
  end_ = end;
}

std::optional<Ticket> Tickets::Take(int worker, int64_t most) {
  RT_CHECK(most > 0, "a ticket has rows");
  Ticket ticket;
  if (!back_.empty()) {
    const auto lowest = back_.begin();
    ticket = {lowest->first, std::min(most, lowest->second)};
    const Ticket rest = {ticket.end(), lowest->second - ticket.rows};
    back_.erase(lowest);
    if (rest.rows > 0) back_[rest.first] = rest.rows;
  } else {
    if (next_ == end_) return std::nullopt;
    const int64_t left = rows_per_epoch_ - next_ % rows_per_epoch_;
    ticket = {next_, std::min({most, left, end_ - next_})};
    next_ = ticket.end();
  }
  held_[ticket.first] = {.worker = worker, .rows = ticket.rows};
  return ticket;
}

bool Tickets::Holds(int worker, const Ticket& ticket) const {
  const auto at = held_.find(ticket.first);
  return at != held_.end() && at->second.worker == worker && at->second.rows == ticket.rows;
}

void Tickets::Use(int worker, const Ticket& ticket) {
  RT_CHECK(Holds(worker, ticket), "a ticket that the worker holds");
  held_.erase(ticket.first);
}

void Tickets::GiveBack(int worker, const Ticket& ticket) {
  Use(worker, ticket);
  PutBack(ticket);
}

void Tickets::Remove(int worker) {
  for (auto at = held_.begin(); at != held_.end();) {
    if (at->second.worker != worker) {
      ++at;
      continue;
    }
    PutBack({at->first, at->second.rows});
    at = held_.erase(at);
  }
}

int64_t Tickets::UsedUpTo() const {
  int64_t up_to = next_;
  if (!held_.empty()) up_to = std::min(up_to, held_.begin()->first);
  if (!back_.empty()) up_to = std::min(up_to, back_.begin()->first);
  return up_to;
}

std::vector<Ticket> Tickets::Unused() const {
  std::vector<Ticket> unused;
  for (const auto& [first, rows] : back_) unused.push_back({first, rows});
  for (const auto& [first, held] : held_) unused.push_back({first, held.rows});
  std::ranges::sort(unused, {}, &Ticket::first);
  return unused;
}

void Tickets::PutBack(Ticket ticket) {
  const auto same_epoch = [&](int64_t row) {
    return row / rows_per_epoch_ == ticket.first / rows_per_epoch_;
  };
  auto after = back_.lower_bound(ticket.first);
  if (after != back_.end() && after->first == ticket.end() && same_epoch(after->first)) {
    ticket.rows += after->second;
    after = back_.erase(after);
  }
  if (after != back_.begin()) {
    const auto before = std::prev(after);
    if (before->first + before->second == ticket.first && same_epoch(before->first)) {
      before->second += ticket.rows;
      return;
    }
  }
  back_[ticket.first] = ticket.rows;
}

}  // namespace ringtail
