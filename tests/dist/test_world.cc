#include "tests/dist/test_world.h"

#include <thread>
#include <utility>

#include "core/check.h"
#include "dist/transport/in_process.h"

namespace ringtail {

void PrintTo(const WorldKind& kind, std::ostream* out) { *out << kind.name; }

std::vector<WorldKind> AllWorldKinds() { return {{"in_process", MakeInProcessWorld}}; }

Deadline TestDeadline() { return std::chrono::steady_clock::now() + std::chrono::minutes(5); }

std::vector<Status> Await(CompletionQueue* queue, size_t n) {
  std::vector<Status> by_id(n);
  for (size_t i = 0; i < n; ++i) {
    Completion completion;
    RT_CHECK(queue->Next(&completion, TestDeadline()), "operations complete");
    RT_CHECK(completion.id < n, "ids are 0 to n - 1 here");
    by_id[completion.id] = std::move(completion.status);
  }
  return by_id;
}

void OnEveryRank(int world_size, const std::function<void(int rank)>& body) {
  std::vector<std::jthread> threads;
  for (int rank = 0; rank < world_size; ++rank) threads.emplace_back(body, rank);
}

std::vector<std::byte> PatternBytes(size_t bytes, uint64_t seed) {
  std::vector<std::byte> pattern(bytes);
  uint64_t state = seed * 0x9E3779B97F4A7C15 + 1;
  for (std::byte& byte : pattern) {
    state = state * 6364136223846793005 + 1442695040888963407;
    byte = static_cast<std::byte>(state >> 56);
  }
  return pattern;
}

}  // namespace ringtail
