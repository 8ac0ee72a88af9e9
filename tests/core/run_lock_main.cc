// Holds the lock of a run folder until it is killed: core_run_lock_main FOLDER. For
// run_lock_test.cc.
#include <unistd.h>

#include <cstdio>

#include "core/storage/run_lock.h"

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  const ringtail::StatusOr<ringtail::RunLock> lock = ringtail::RunLock::Acquire(argv[1]);
  std::puts(lock.ok() ? "locked" : lock.status().message().c_str());
  std::fflush(stdout);
  if (!lock.ok()) return 1;
  while (true) pause();
}
