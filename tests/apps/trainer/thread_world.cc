#include "tests/apps/trainer/thread_world.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include "dist/transport/in_process.h"

namespace ringtail {

void OnTrainingRanks(int size, const std::function<void(TrainingWorld*)>& body,
                     const NetworkModel& network) {
  const auto transports = MakeInProcessWorld(size);
  // Protobuf makes a default text at its first use, under a lock that the race detector cannot see.
  ASSERT_EQ(DistConfig().algorithm(), "auto");
  std::vector<std::jthread> threads;
  threads.reserve(size);
  for (int rank = 0; rank < size; ++rank) {
    threads.emplace_back([&, rank] {
      const auto world = TrainingWorld::Create({.transport = transports[rank].get(),
                                                .topology = Topology::Blocks(size, 1),
                                                .network = network},
                                               DistConfig());
      ASSERT_TRUE(world.ok()) << world.status().message();
      body(world->get());
    });
  }
}

}  // namespace ringtail
