// A program that tests tell to stop:
//
//   core_stop_signal_main [early | launched | other]
//
// Prints "ready TID" (with "early": of a thread started before ReceiveStopSignals), "told N" once
// it is told to stop (with "launched": its parent is mpirun; with "other": another process has received SIGUSR1), and the
// signals that each of its threads blocks; runs until it is killed.
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>

#include "core/stop_signal.h"

namespace ringtail {
namespace {

void Pause() {
  while (true) std::this_thread::sleep_for(std::chrono::milliseconds(50));
}

// "rt-signals 0000000001001a03"
void PrintMasks() {
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
    std::ifstream status(task.path() / "status");
    std::string key, value, name;
    while (status >> key >> value && key != "SigBlk:") {
      if (key == "Name:") name = value;
    }
    std::printf("%s %s\n", name.c_str(), value.c_str());
  }
}

int Main(const std::string& how) {
  std::atomic<pid_t> tid = 0;
  if (how == "early") {
    std::thread([&] {
      tid = static_cast<pid_t>(syscall(SYS_gettid));
      Pause();
    }).detach();
    while (tid == 0) std::this_thread::yield();
  }
  ReceiveStopSignals();
  SetStopNotice("stopping");
  if (how == "launched") SetJobLauncher("mpirun");
  if (how == "other") StopAsBySignal(SIGUSR1);
  std::thread(Pause).detach();
  std::printf("ready %d\n", tid.load());
  std::fflush(stdout);
  while (StopSignal() == 0) std::this_thread::sleep_for(std::chrono::milliseconds(5));
  std::printf("told %d\n", StopSignal());
  PrintMasks();
  std::printf("end of masks\n");
  std::fflush(stdout);
  Pause();
  return 0;
}

}  // namespace
}  // namespace ringtail

int main(int count, char** arguments) { return ringtail::Main(count > 1 ? arguments[1] : ""); }
