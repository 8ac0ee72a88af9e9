// TicketDesk: hands out tickets to workers that ask for them, until all rows of a round are used;
// then the worker that keeps the run (worker 0) looks at what has become of it.
//
//   Open(100)     rows 0 .. 99 are handed out      tickets.h
//   Ask(A)        A: 0..7
//   Ask(B)        B: 8..15
//   ...           rows 96 .. 99 are the last
//   Ask(A)        no answer: some rows may come back
//   Use(B, ...)   all rows before 100 are used: the keeper's Ask is answered, without a ticket
//   Open(200)     the next round; the others' questions have waited
//   Close(...)    every Ask is answered, without a ticket, also those that come later
//
// In turn (where all wait for all): tickets are handed out once every worker has asked, to the
// lowest worker first, so that who computes what does not depend on who is faster. If there are rows
// for some only, as after a death or a refusal, the others' tickets are of no rows, which they say
// they are done with (Pass): who waits for a worker waits for one that has something to push.
// A worker that is told to stop says so when it asks (`signal`, not 0): no more rows are handed out,
// and the round is over once the tickets under way are used or back.
// Thread-safety: none. Cost: that of Tickets, and a look at each worker if in turn.
#ifndef RINGTAIL_DIST_PARAMETER_SERVER_WIRE_TICKET_DESK_H_
#define RINGTAIL_DIST_PARAMETER_SERVER_WIRE_TICKET_DESK_H_

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "dist/parameter_server/tickets.h"

namespace ringtail {

class TicketDesk {
 public:
  TicketDesk(Tickets tickets, bool in_turn) : tickets_(std::move(tickets)), in_turn_(in_turn) {}

  // `most` rows in each of its tickets; 0: it only hears that a round is over, or all is.
  void Join(int worker, int64_t most);
  void Remove(int worker);  // its tickets are back, its questions gone
  // Its questions, by number, of which none is answered any more.
  std::vector<uint64_t> Withdraw(int worker);
  bool Has(int worker) const { return most_.contains(worker); }
  bool Computes() const;  // anyone that is there
  // Rows before `end` may be handed out; a signal that an answer has told is forgotten.
  void Open(int64_t end);
  void Close() { closed_ = true; }

  // Of a worker that is there.
  void Ask(int worker, uint64_t number, int signal);
  bool Holds(int worker, const Ticket& ticket) const { return tickets_.Holds(worker, ticket); }
  // As Tickets. False, and nothing done, if the worker does not hold the ticket.
  bool Use(int worker, const Ticket& ticket);
  bool GiveBack(int worker, const Ticket& ticket);
  // Of a worker that has a ticket of no rows.
  bool Passes(int worker) const { return passes_.contains(worker); }
  void Pass(int worker) { passes_.erase(passes_.find(worker)); }

  struct Answer {
    int worker = 0;
    uint64_t number = 0;           // of Ask
    std::optional<Ticket> ticket;  // none: the round is over, or all is
    bool closed = false;
    // Why, if not because all rows are used, and the worker that said so.
    int signal = 0, stopped_by = 0;
  };
  // What can be answered now, in order.
  std::vector<Answer> TakeAnswers();

  const Tickets& tickets() const { return tickets_; }

 private:
  struct Question {
    int worker = 0;
    uint64_t number = 0;
  };
  static constexpr int kKeeper = 0;
  bool RoundIsOver() const;
  void EndQuestions(std::vector<Answer>* answers);
  bool EveryWorkerAsks() const;
  bool AnswerOne(const std::deque<Question>::iterator& question, std::vector<Answer>* answers);
  bool AnswerOneOfEach(std::vector<Answer>* answers);

  Tickets tickets_;
  const bool in_turn_;
  std::map<int, int64_t> most_;     // by worker
  std::multiset<int> passes_;       // workers, for each of their tickets of no rows
  std::deque<Question> questions_;  // in the order of arrival
  int64_t end_ = 0;
  int signal_ = 0, stopped_by_ = 0;
  bool told_ = false;  // the keeper, of the signal
  bool closed_ = false;
};

}  // namespace ringtail

#endif  // RINGTAIL_DIST_PARAMETER_SERVER_WIRE_TICKET_DESK_H_
