// A run that only saves: core_checkpoint_writer_main RUN_FOLDER SAVES [FILE_SIZE_LIMIT]
//
// Resumes from the newest checkpoint. Prints "saving N" before each save, and "durable N" only once
// Save has returned OK; a failed save ends it with exit code 1 and the error. For tests that kill
// it or make its system calls fail.
#include <sys/resource.h>
#include <unistd.h>

#include <cstdlib>
#include <string>

#include "tests/core/checkpoint_content.h"

namespace {

// With one system call, so that no line is lost or torn when the process is killed.
void Print(const std::string& line) {
  const std::string text = line + "\n";
  if (write(STDOUT_FILENO, text.data(), text.size()) < 0) std::_Exit(3);
}

ringtail::Status SaveSteps(const std::string& run_folder, int saves) {
  using ringtail::CheckpointDirectory;
  RT_ASSIGN_OR_RETURN(const ringtail::RunLock lock, ringtail::RunLock::Acquire(run_folder));
  RT_ASSIGN_OR_RETURN(CheckpointDirectory directory, CheckpointDirectory::Open(lock));
  const auto newest = ringtail::LoadNewestCheckpoint(run_folder);
  if (!newest.ok() && newest.status().code() != ringtail::StatusCode::kNotFound) {
    return newest.status();
  }
  int64_t step = newest.ok() ? newest->step : 0;
  for (int save = 0; save < saves; ++save) {
    ++step;
    Print("saving " + std::to_string(step));
    RT_RETURN_IF_ERROR(SaveTestCheckpoint(&directory, step));
    RT_RETURN_IF_ERROR(directory.SaveBest(step));
    Print("durable " + std::to_string(step));
  }
  return ringtail::OkStatus();
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3 && argc != 4) return 2;
  if (argc == 4) {  // RLIMIT_FSIZE in bytes
    const rlimit limit = {std::stoul(argv[3]), std::stoul(argv[3])};
    if (setrlimit(RLIMIT_FSIZE, &limit) != 0) return 2;
  }
  const ringtail::Status status = SaveSteps(argv[1], std::atoi(argv[2]));
  if (!status.ok()) Print("error " + status.ToString());
  return status.ok() ? 0 : 1;
}
