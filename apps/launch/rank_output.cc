#include "apps/launch/rank_output.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <span>
#include <utility>

#include "core/storage/file.h"
#include "core/text/printable.h"

namespace ringtail {
namespace {

bool SameFile(int one, int other) {
  struct stat first = {}, second = {};
  return fstat(one, &first) == 0 && fstat(other, &second) == 0 && first.st_dev == second.st_dev &&
         first.st_ino == second.st_ino;
}

}  // namespace

RankOutput::RankOutput(PollLoop* loop, int world, std::string program,
                       LineSplitter::LineFunction on_line_of_rank_0)
    : program_(std::move(program)),
      on_line_of_rank_0_(std::move(on_line_of_rank_0)),
      out_(std::make_shared<OutQueue>(loop, STDOUT_FILENO)),
      err_(SameFile(STDOUT_FILENO, STDERR_FILENO)
               ? out_
               : std::make_shared<OutQueue>(loop, STDERR_FILENO)) {
  for (int rank = 0; rank < world; ++rank) {
    for (const bool errors : {false, true}) {
      lines_.emplace_back(
          [this, rank, errors](std::string_view line) { Line(rank, errors, line); });
    }
  }
}

Status RankOutput::OpenFiles(const std::string& folder) {
  RT_RETURN_IF_ERROR(MakeDirectories(folder));
  for (size_t rank = 0; rank < lines_.size() / 2; ++rank) {
    RT_ASSIGN_OR_RETURN(FileDescriptor file,
                        FileDescriptor::Open(fmt::format("{}/rank-{}.txt", folder, rank),
                                             O_WRONLY | O_CREAT | O_TRUNC));
    files_.push_back(std::move(file));
  }
  return OkStatus();
}

void RankOutput::Add(int rank, bool errors, std::string_view bytes) {
  lines_[2 * rank + (errors ? 1 : 0)].Add(bytes);
}

void RankOutput::End(int rank) {
  lines_[2 * rank].End();
  lines_[2 * rank + 1].End();
}

void RankOutput::Line(int rank, bool errors, std::string_view line) {
  if (rank == 0 && !errors && on_line_of_rank_0_) {
    on_line_of_rank_0_(line);
  } else {
    (errors ? err_ : out_)->Append(fmt::format("[{}] {}\n", rank, line));
  }
  if (files_.empty() || file_error_) return;
  const std::string text = fmt::format("{}\n", line);
  const Status written = files_[rank].Write(std::as_bytes(std::span(text)));
  if (written.ok()) return;
  file_error_ = written;
  Say(program_, written.message() + "; the ranks continue without files of their output");
}

void RankOutput::Say(std::string_view prefix, std::string_view line) {
  if (line.ends_with('\r')) line.remove_suffix(1);  // ssh ends lines with \r\n
  err_->Append(fmt::format("{}: {}\n", prefix, Printable(line)));
}

void RankOutput::DropWhatDoesNotFit() {
  out_->DropWhatDoesNotFit();
  err_->DropWhatDoesNotFit();
}

}  // namespace ringtail
