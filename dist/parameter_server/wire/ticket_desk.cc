#include "dist/parameter_server/wire/ticket_desk.h"

#include <algorithm>

#include "core/check.h"

namespace ringtail {

void TicketDesk::Join(int worker, int64_t most) {
  RT_CHECK(most >= 0 && !Has(worker), "a worker joins once");
  most_[worker] = most;
}

void TicketDesk::Remove(int worker) {
  most_.erase(worker);
  passes_.erase(worker);
  tickets_.Remove(worker);
  Withdraw(worker);
}

std::vector<uint64_t> TicketDesk::Withdraw(int worker) {
  std::vector<uint64_t> numbers;
  std::erase_if(questions_, [&](const Question& asked) {
    if (asked.worker == worker) numbers.push_back(asked.number);
    return asked.worker == worker;
  });
  return numbers;
}

void TicketDesk::Open(int64_t end) {
  end_ = end;
  tickets_.LimitTo(end);
  // One that has come since the keeper was answered ends the new round: who said it says it once.
  if (told_) signal_ = stopped_by_ = 0;
  told_ = false;
}

void TicketDesk::Ask(int worker, uint64_t number, int signal) {
  RT_CHECK(Has(worker), "a worker that is there");
  if (signal_ == 0 && signal != 0) {
    signal_ = signal;
    stopped_by_ = worker;
  }
  questions_.push_back({worker, number});
}

bool TicketDesk::Use(int worker, const Ticket& ticket) {
  if (!tickets_.Holds(worker, ticket)) return false;
  tickets_.Use(worker, ticket);
  return true;
}

bool TicketDesk::GiveBack(int worker, const Ticket& ticket) {
  if (!tickets_.Holds(worker, ticket)) return false;
  tickets_.GiveBack(worker, ticket);
  return true;
}

bool TicketDesk::RoundIsOver() const {
  return passes_.empty() && (signal_ != 0 ? tickets_.idle() : tickets_.UsedUpTo() >= end_);
}

bool TicketDesk::Computes() const {
  return std::ranges::any_of(most_, [](const auto& worker) { return worker.second > 0; });
}

bool TicketDesk::EveryWorkerAsks() const {
  return std::ranges::all_of(most_, [&](const auto& worker) {
    return worker.second == 0 ||
           std::ranges::find(questions_, worker.first, &Question::worker) != questions_.end();
  });
}

// Whether there was a ticket.
bool TicketDesk::AnswerOne(const std::deque<Question>::iterator& question,
                           std::vector<Answer>* answers) {
  const auto [worker, number] = *question;
  const std::optional<Ticket> ticket = tickets_.Take(worker, most_.at(worker));
  if (!ticket) return false;
  answers->push_back({.worker = worker, .number = number, .ticket = ticket});
  questions_.erase(question);
  return true;
}

// Nothing if there is a ticket for none of them.
bool TicketDesk::AnswerOneOfEach(std::vector<Answer>* answers) {
  bool any = false;
  for (const auto& [worker, most] : most_) {
    if (most == 0) continue;
    const auto question = std::ranges::find(questions_, worker, &Question::worker);
    if (AnswerOne(question, answers)) {
      any = true;
      continue;
    }
    if (!any) return false;
    answers->push_back({.worker = worker, .number = question->number, .ticket = Ticket{}});
    questions_.erase(question);
    passes_.insert(worker);
  }
  return true;
}

// Those of the keeper; once closed, all.
void TicketDesk::EndQuestions(std::vector<Answer>* answers) {
  std::erase_if(questions_, [&](const Question& asked) {
    if (!closed_ && asked.worker != kKeeper) return false;
    told_ = told_ || signal_ != 0;
    answers->push_back({.worker = asked.worker,
                        .number = asked.number,
                        .closed = closed_,
                        .signal = signal_,
                        .stopped_by = stopped_by_});
    return true;
  });
}

std::vector<TicketDesk::Answer> TicketDesk::TakeAnswers() {
  std::vector<Answer> answers;
  if (closed_ || RoundIsOver()) {
    EndQuestions(&answers);
    return answers;
  }
  if (signal_ != 0) return answers;
  if (in_turn_) {
    while (Computes() && EveryWorkerAsks() && AnswerOneOfEach(&answers)) {
    }
  } else {
    const auto computes = [this](const Question& asked) { return most_.at(asked.worker) > 0; };
    auto next = std::ranges::find_if(questions_, computes);
    while (next != questions_.end() && AnswerOne(next, &answers)) {
      next = std::ranges::find_if(questions_, computes);
    }
  }
  return answers;
}

}  // namespace ringtail
