#include "tests/dist/transport/faulty_transport.h"

#include <utility>

#include "core/machine/thread_budget.h"

namespace ringtail {

FaultyTransport::FaultyTransport(std::unique_ptr<Transport> transport, const Faults& faults)
    : transport_(std::move(transport)),
      faults_(faults),
      random_(RngKey(faults.seed).With(static_cast<uint64_t>(transport_->rank()))),
      thread_([this] { MakeDelayedCalls(); }) {}

FaultyTransport::~FaultyTransport() {
  {
    MutexLock lock(&mutex_);
    stopping_ = true;
    changed_.NotifyOne();
  }
  thread_.join();
}

void FaultyTransport::StartSend(int peer, const MessageLabel& label,
                                std::span<const std::byte> bytes, CompletionTarget done) {
  bool lost = false, corrupt = false, dies = false;
  {
    MutexLock lock(&mutex_);
    lost = random_.Uniform() < faults_.loss;
    corrupt = random_.Uniform() < faults_.corruption;
    dies = ++sends_ == faults_.dies_after;
  }
  if (dies) transport_->Abort({StatusCode::kUnavailable, "died of a fault"});
  if (lost) return done.queue->Put({.id = done.id});
  MessageLabel sent = label;
  if (corrupt) sent.check ^= 1;
  Delay([=, this] { transport_->Send(peer, sent, bytes, done); });
}

void FaultyTransport::StartReceive(int peer, const MessageLabel& label, ReceiveBuffer buffer,
                                   CompletionTarget done) {
  Delay([=, this] { transport_->Receive(peer, label, buffer, done); });
}

void FaultyTransport::Abort(const Status& cause) { transport_->Abort(cause); }

void FaultyTransport::Delay(std::function<void()> call) {
  if (faults_.delay.count() == 0) return call();
  MutexLock lock(&mutex_);
  const std::chrono::microseconds delay(random_.Below(faults_.delay.count()));
  delayed_.emplace(Clock::now() + delay, std::move(call));
  changed_.NotifyOne();
}

void FaultyTransport::MakeDelayedCalls() {
  SetThreadName("rt-test-delay");
  for (;;) {
    std::function<void()> call;
    {
      MutexLock lock(&mutex_);
      while (delayed_.empty() ? !stopping_ : delayed_.begin()->first > Clock::now()) {
        const auto when =
            delayed_.empty() ? Clock::now() + std::chrono::seconds(1) : delayed_.begin()->first;
        changed_.WaitUntil(&mutex_, when);
      }
      if (delayed_.empty()) return;
      call = std::move(delayed_.begin()->second);
      delayed_.erase(delayed_.begin());
    }
    call();
  }
}

World MakeFaulty(World world, const Faults& faults) {
  for (auto& transport : world) {
    transport = std::make_unique<FaultyTransport>(std::move(transport), faults);
  }
  return world;
}

}  // namespace ringtail
