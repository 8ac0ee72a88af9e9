#include "apps/trainer/checkpoint/part_exchange.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <utility>

#include "core/logging.h"
#include "core/storage/file.h"

namespace ringtail {
namespace {

// Reads the bytes of a file that lies in several pieces as if they were contiguous.
class ByteRow {
 public:
  explicit ByteRow(const SafetensorsImage& image) : pieces_(image.Pieces()) {}
  // Fills `to` as far as there are bytes; the rest of it is unchanged.
  void Take(std::span<std::byte> to) {
    while (!to.empty() && next_ < pieces_.size()) {
      const std::span<const std::byte> rest = pieces_[next_].subspan(taken_);
      const size_t count = std::min(rest.size(), to.size());
      std::copy_n(rest.begin(), count, to.begin());
      to = to.subspan(count);
      taken_ += count;
      if (taken_ < pieces_[next_].size()) continue;
      ++next_;
      taken_ = 0;
    }
  }

 private:
  const std::vector<std::span<const std::byte>> pieces_;
  size_t next_ = 0, taken_ = 0;
};

// Calls `each` on all ranks for every piece that goes from one rank to another. All pieces have the
// same size, the last one is padded, so that all ranks make the same call.
Status InPieces(int64_t bytes,
                const std::function<Status(std::span<std::byte> piece, size_t meant)>& each) {
  std::vector<std::byte> piece(PartExchange::kPieceBytes);
  for (int64_t done = 0; done < bytes; done += PartExchange::kPieceBytes) {
    RT_RETURN_IF_ERROR(
        each(piece, static_cast<size_t>(std::min(bytes - done, PartExchange::kPieceBytes))));
  }
  return OkStatus();
}

// A file of rank 0's that exists for a moment. If it is left behind, it is removed as every
// temporary file is.
class Probe {
 public:
  // `folder` must outlive it.
  Probe(const HeldFolder& folder, const std::string& tag)
      : name_(fmt::format(".seen-{}.tmp-{}", tag, getpid())), path_(folder.Through(name_)) {}
  ~Probe() { unlink(path_.c_str()); }
  Probe(const Probe&) = delete;
  Probe& operator=(const Probe&) = delete;
  Status Write() const {
    return WriteFileAtomic(path_, "A rank that sees this file shares the folder of the run.\n");
  }
  const std::string& name() const { return name_; }

 private:
  const std::string name_, path_;
};

// What rank 0 tells the others about its folder: an error, or the tag and the probe in it.
struct Invitation {
  std::string error, tag, probe, folder;
  std::string Text() const {
    return error.empty() ? fmt::format("{}\n{}\n{}", tag, probe, folder) : "\n" + error;
  }
  static Invitation Parse(const std::string& text) {
    const size_t first = text.find('\n');
    if (first == 0) return {.error = text.substr(1), .tag = {}, .probe = {}, .folder = {}};
    const size_t second = text.find('\n', first + 1);
    return {.error = {},
            .tag = text.substr(0, first),
            .probe = text.substr(first + 1, second - first - 1),
            .folder = text.substr(second + 1)};
  }
};

// The folder, if it is the one with the probe.
std::optional<HeldFolder> OpenIfSeen(const Invitation& invitation, const SeesFile& sees) {
  if (!sees(invitation.folder + "/" + invitation.probe)) return std::nullopt;
  auto folder = HeldFolder::Open(invitation.folder);
  // Another folder may have taken its name in between.
  if (!folder.ok() || !FileIsThere(folder->Through(invitation.probe))) return std::nullopt;
  return *std::move(folder);
}

std::string SavedText(const SavedParts& saved) {
  if (saved.empty()) return "";
  return fmt::format("{} {}\n{}", saved.step, PartsText(saved.parts), saved.folder);
}

StatusOr<SavedParts> ParseSaved(const std::string& text) {
  SavedParts saved;
  if (text.empty()) return saved;
  const size_t space = text.find(' '), line = text.find('\n');
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), saved.step);
  if (error != std::errc() || line == std::string::npos || end != text.data() + space) {
    return DataLoss("the list of parts that another rank has read is damaged");
  }
  RT_ASSIGN_OR_RETURN(saved.parts, ParsePartsText(text.substr(space + 1, line - space - 1)));
  saved.folder = text.substr(line + 1);
  return saved;
}

// A part on its way from the disk of rank `from` to rank `to`; what arrived there.
StatusOr<std::vector<std::byte>> Fetch(TrainingWorld* world, const std::string& path, int64_t bytes,
                                       int from, int to) {
  std::optional<FileDescriptor> file;
  if (world->rank() == from) {
    RT_ASSIGN_OR_RETURN(file, FileDescriptor::Open(path, O_RDONLY | O_NONBLOCK));
  }
  std::vector<std::byte> arrived;
  RT_RETURN_IF_ERROR(world->Run([&](Communicator* ranks) {
    return InPieces(bytes, [&](std::span<std::byte> piece, size_t meant) -> Status {
      if (file) RT_RETURN_IF_ERROR(file->Read(piece.first(meant)).status());
      RT_RETURN_IF_ERROR(ranks->Copy(piece, from, to));
      if (ranks->rank() == to) arrived.insert(arrived.end(), piece.begin(), piece.begin() + meant);
      return OkStatus();
    });
  }));
  return arrived;
}

// All ranks: that of the first that has one, by its name.
StatusOr<WrittenParts> PartsIfAll(TrainingWorld* world, const Status& own,
                                  std::optional<CheckpointParts> parts) {
  RT_ASSIGN_OR_RETURN(const auto found, world->FirstError(own));
  Status status = OkStatus();
  if (found) status = DataLoss(fmt::format("{}: {}", world->Describe(found->rank), found->message));
  return WrittenParts{std::move(status), std::move(parts)};
}

}  // namespace

bool FileIsThere(const std::string& path) { return access(path.c_str(), F_OK) == 0; }

StatusOr<std::unique_ptr<PartExchange>> PartExchange::Create(TrainingWorld* world,
                                                             const CheckpointDirectory* directory,
                                                             const SeesFile& sees) {
  RT_ASSIGN_OR_RETURN(const std::string any,
                      world->ShareText(world->leads() && directory != nullptr ? "+" : ""));
  if (any.empty()) return std::unique_ptr<PartExchange>();
  std::unique_ptr<PartExchange> exchange(new PartExchange(world, sees));
  // Sets blind_. If there is no place yet, that is no error: each save tries again, and then fails
  // and says so.
  RT_RETURN_IF_ERROR(exchange->FindPlace(directory).status());
  return exchange;
}

StatusOr<PartExchange::Place> PartExchange::FindPlace(const CheckpointDirectory* directory) {
  Place place;
  std::optional<Probe> probe;
  std::string text;
  if (world_->leads()) {
    Invitation invitation{.error = {}, .tag = DrawPartTag(), .probe = {}, .folder = {}};
    place.status = FailedPrecondition("this run has no folder");
    if (directory != nullptr) {
      auto folder = directory->Hold();
      place.status = Status(folder.status());
      if (folder.ok()) place.folder.emplace(*std::move(folder));
    }
    if (place.folder) {
      probe.emplace(*place.folder, invitation.tag);
      place.status = place.folder->Named(probe->Write());
      invitation.probe = probe->name();
      invitation.folder = place.folder->path();
    }
    invitation.error = place.status.message();
    text = invitation.Text();
  }
  RT_ASSIGN_OR_RETURN(text, world_->ShareText(std::move(text)));
  const Invitation invitation = Invitation::Parse(text);
  if (!invitation.error.empty()) {
    place.status = FailedPrecondition(fmt::format("{} cannot write to the folder of the run: {}",
                                                  world_->Describe(0), invitation.error));
    return place;
  }
  place.tag = invitation.tag;
  if (!world_->leads()) place.folder = OpenIfSeen(invitation, sees_);
  RT_ASSIGN_OR_RETURN(const std::vector<int64_t> seeing,
                      world_->Gather(int64_t{place.folder ? 1 : 0}));
  blind_.clear();
  for (int rank = 0; rank < world_->size(); ++rank) {
    if (seeing[rank] == 0) blind_.push_back(rank);
  }
  return place;
}

Status PartExchange::Relay(int from, const SafetensorsImage& own, int64_t bytes,
                           const std::string& path, Status* written) {
  ByteRow row(own);
  Status world = OkStatus();
  const auto receive = [&](const std::function<Status(std::span<const std::byte>)>& use) {
    world = world_->Run([&](Communicator* ranks) {
      return InPieces(bytes, [&](std::span<std::byte> piece, size_t meant) -> Status {
        if (ranks->rank() == from) row.Take(piece);
        RT_RETURN_IF_ERROR(ranks->Copy(piece, from, 0));
        const Status used = use(piece.first(meant));
        if (written->ok()) *written = used;  // what comes after an error is received all the same
        return OkStatus();
      });
    });
  };
  const auto drop = [](std::span<const std::byte> /*piece*/) { return OkStatus(); };
  if (!world_->leads()) {
    receive(drop);
    return world;
  }
  bool began = false;
  const Status file = WriteFileAtomic(path, [&](const FileDescriptor& to) {
    began = true;
    receive([&](std::span<const std::byte> piece) {
      return written->ok() ? to.Write(piece) : OkStatus();
    });
    return world.ok() ? *written : world;
  });
  if (written->ok()) *written = file;
  if (!began) receive(drop);
  return world;
}

StatusOr<WrittenParts> PartExchange::Write(int64_t step, std::span<const TensorView> own,
                                           const CheckpointDirectory* directory) {
  RT_ASSIGN_OR_RETURN(WrittenParts checked, PartsIfAll(world_, CheckFinite(own), std::nullopt));
  if (!checked.status.ok()) return checked;
  RT_ASSIGN_OR_RETURN(const SafetensorsImage image, SerializeSafetensors(own, {}));
  // The folder of a run may be renamed while it continues (core/storage/run_lock.h): rank 0 knows.
  RT_ASSIGN_OR_RETURN(const Place place, FindPlace(directory));
  if (!place.status.ok()) return WrittenParts{place.status, std::nullopt};
  CheckpointParts parts{.tag = place.tag, .ranks = {}};
  RT_ASSIGN_OR_RETURN(parts.ranks, world_->Gather(SummaryOf(image)));
  const auto path = [&](int rank) {
    return place.folder->Through(PartName(step, rank, world_->size(), parts.tag));
  };
  Status written;
  if (place.folder) {
    const ScopedPhase saving(world_->progress(), Phase::kCheckpoint);
    written = WriteFileAtomic(path(world_->rank()), image.Pieces());
  }
  for (const int rank : blind_) {
    RT_RETURN_IF_ERROR(
        Relay(rank, image, parts.ranks[rank].bytes, world_->leads() ? path(rank) : "", &written));
  }
  if (place.folder) written = place.folder->Named(written);
  return PartsIfAll(world_, written, std::move(parts));
}

SavedParts PartsOf(const Checkpoint& checkpoint) {
  if (!checkpoint.parts) return {};
  const auto file = std::filesystem::absolute(checkpoint.path).lexically_normal();
  return {checkpoint.step, file.parent_path(), *checkpoint.parts};
}

Status ReadParts(TrainingWorld* world, const SavedParts& saved, int source_rank,
                 const PartReader& reader, const SeesFile& sees_file) {
  RT_ASSIGN_OR_RETURN(const std::string text, world->ShareText(SavedText(saved), source_rank));
  RT_ASSIGN_OR_RETURN(const SavedParts all, ParseSaved(text));
  const int saved_world = all.parts.world();
  const auto path = [&](int from) {
    return all.folder + "/" + PartName(all.step, from, saved_world, all.parts.tag);
  };
  // The source rank has proven that they are there for itself.
  bool sees = true;
  for (int from = 0; from < saved_world && world->rank() != source_rank; ++from) {
    if (!reader.needs(world->rank(), from, saved_world)) continue;
    sees = sees && sees_file(path(from)) && FindPart(path(from), all.parts.ranks[from]).ok();
  }
  RT_ASSIGN_OR_RETURN(const std::vector<int64_t> seeing, world->Gather(int64_t{sees ? 1 : 0}));
  for (int from = 0; from < saved_world; ++from) {
    const CheckpointPart& part = all.parts.ranks[from];
    if (sees && reader.needs(world->rank(), from, saved_world)) {
      RT_ASSIGN_OR_RETURN(const SafetensorsFile file, ReadPart(path(from), part));
      RT_RETURN_IF_ERROR(reader.take(file, from, saved_world).Annotate(path(from)));
      world->progress()->Tick();  // there may be many
    }
    for (int to = 0; to < world->size(); ++to) {
      if (seeing[to] != 0 || !reader.needs(to, from, saved_world)) continue;
      RT_ASSIGN_OR_RETURN(auto bytes, Fetch(world, path(from), part.bytes, source_rank, to));
      if (world->rank() != to) continue;
      RT_ASSIGN_OR_RETURN(const SafetensorsFile file,
                          ParsePart(std::move(bytes), path(from), part));
      RT_RETURN_IF_ERROR(reader.take(file, from, saved_world).Annotate(path(from)));
    }
  }
  return OkStatus();
}

int64_t BytesOf(std::span<const TensorView> tensors) {
  int64_t bytes = 0;
  for (const TensorView& tensor : tensors) bytes += std::ssize(tensor.data);
  return bytes;
}

void WarnOfBlindRanks(const PartExchange& parts, const TrainingWorld& world,
                      const CheckpointDirectory* directory, int64_t bytes) {
  if (parts.blind().empty() || !world.leads()) return;
  LogWarning(
      fmt::format("{} of {} ranks do not see '{}' ({}): at every checkpoint rank 0 receives {:.1f} "
                  "MB from each of them and writes it; a folder that all hosts share avoids that",
                  parts.blind().size(), world.size(), directory->folder(),
                  world.Describe(parts.blind().front()), static_cast<double>(bytes) / 1e6));
}

}  // namespace ringtail
