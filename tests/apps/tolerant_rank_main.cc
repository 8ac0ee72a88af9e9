// A rank of a job that outlives its losses, as asynchronous training is one:
//
//   apps_tolerant_rank_main CONFIG FAULT RANK TRACE
//
// Joins as dogs_vs_cats does. Then every rank sends words to rank 0, which takes them from each until
// it has all or the rank is lost. FAULT of rank RANK in the middle: kill, stop (SIGSTOP), fail (it
// ends with an error of its own), none. TRACE: file for the timeline, or "". Rank 0 prints how many
// words each rank has sent.
#include <fmt/format.h>
#include <signal.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include "apps/config/run_config.h"
#include "apps/exit_code.h"
#include "apps/session/world_session.h"
#include "dist/membership/identity/rank_environment.h"

namespace ringtail {
namespace {

constexpr uint64_t kWords = 100;

MessageLabel Label(Channel channel, uint64_t word) {
  return {.tag = {.collective = channel.FirstCollective() + word}};
}

Status Await(CompletionQueue* queue, Completion* completion) {
  const Deadline deadline = std::chrono::steady_clock::now() + std::chrono::minutes(2);
  return queue->Next(completion, deadline) ? OkStatus() : Internal("nothing comes");
}

Status Take(TrainingWorld* world, Channel channel) {
  const ScopedPhase blocked(world->progress(), Phase::kBlocked);
  std::vector<uint64_t> words(world->size()), taken(world->size());
  CompletionQueue queue;
  const auto expect = [&](int peer) {
    world->transport()->Receive(peer, Label(channel, taken[peer]),
                                std::as_writable_bytes(std::span(&words[peer], 1)),
                                {&queue, static_cast<uint64_t>(peer)});
  };
  for (int peer = 1; peer < world->size(); ++peer) expect(peer);
  for (int left = world->size() - 1; left > 0;) {
    Completion completion;
    RT_RETURN_IF_ERROR(Await(&queue, &completion));
    const int peer = static_cast<int>(completion.id);
    if (!completion.status.ok()) {
      RT_RETURN_IF_ERROR(world->OnFailure(peer, completion.status));
      --left;
    } else if (++taken[peer] == kWords) {
      --left;
    } else {
      expect(peer);
    }
  }
  for (int peer = 1; peer < world->size(); ++peer) {
    std::printf("rank %d: %s\n", peer, taken[peer] == kWords ? "all" : "some");
  }
  return {};
}

Status Fault(const std::string& fault) {
  if (fault == "kill") raise(SIGKILL);
  if (fault == "stop") raise(SIGSTOP);
  return fault == "fail" ? ResourceExhausted("the disk of this rank is full") : OkStatus();
}

Status Tell(TrainingWorld* world, Channel channel, const std::string& fault) {
  CompletionQueue queue;
  for (uint64_t word = 0; word < kWords; ++word) {
    world->progress()->BeginStep(word);
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    if (word == kWords / 2) RT_RETURN_IF_ERROR(Fault(fault));
    const ScopedPhase blocked(world->progress(), Phase::kBlocked);
    world->transport()->Send(0, Label(channel, word), std::as_bytes(std::span(&word, 1)),
                             {&queue, 0});
    Completion completion;
    RT_RETURN_IF_ERROR(Await(&queue, &completion));
    if (!completion.status.ok()) return world->OnFailure(0, completion.status);
  }
  return {};
}

StatusOr<int> Run(WorldSession* session, const std::string& fault) {
  TrainingWorld* const world = session->world();
  const Channel channel = world->NextChannel();
  RT_RETURN_IF_ERROR(world->TolerateLosses(nullptr));
  RT_RETURN_IF_ERROR(world->leads() ? Take(world, channel) : Tell(world, channel, fault));
  return session->EndWith(kExitSuccess);
}

StatusOr<int> Main(char** arguments) {
  RT_ASSIGN_OR_RETURN(const LoadedConfig loaded, LoadRunConfig(arguments[1], {}));
  RT_ASSIGN_OR_RETURN(const RankIdentity identity, DetectRank({}, ProcessEnvironment));
  WorldOptions options;
  options.trace = arguments[4];
  RT_ASSIGN_OR_RETURN(const auto session, WorldSession::Join(options, identity, loaded.config));
  const bool faulty = identity.rank == std::atoi(arguments[3]);
  const auto exit_code = Run(session.get(), faulty ? arguments[2] : "none");
  return exit_code.ok() ? exit_code : session->Fail(exit_code.status());
}

}  // namespace
}  // namespace ringtail

int main(int count, char** arguments) {
  if (count != 5) return ringtail::kExitUsage;
  const auto exit_code = ringtail::Main(arguments);
  if (exit_code.ok()) return *exit_code;
  std::fprintf(stderr, "%s\n", exit_code.status().message().c_str());
  return ringtail::kExitFailure;
}
