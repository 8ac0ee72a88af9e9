#include "apps/trainer/pipeline/stage_state.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>
#include <sstream>
#include <string>
#include <utility>

#include "core/logging.h"
#include "core/round.h"

namespace ringtail {
namespace {

constexpr size_t kPieceBytes = size_t{1} << 20;

// One line for each tensor: its sizes, then its name, which may have spaces.
std::string LineOf(const std::string& name, const Shape& shape) {
  return fmt::format("{} {}\n", fmt::join(shape, ","), name);
}

struct NamedShape {
  std::string name;
  Shape shape;
};

std::vector<NamedShape> ParseLines(const std::string& text) {
  std::vector<NamedShape> tensors;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    const size_t space = line.find(' ');
    NamedShape tensor{.name = line.substr(space + 1), .shape = {}};
    std::istringstream sizes(line.substr(0, space));
    for (std::string size; std::getline(sizes, size, ',');) {
      tensor.shape.push_back(std::stoll(size));
    }
    tensors.push_back(std::move(tensor));
  }
  return tensors;
}

// Tensors travel one behind the other, cut into pieces, through a stream of their own.
Status SendTo(StageLink* link, int rank, std::span<const std::span<const float>> tensors) {
  return link->world()->Run([&](Communicator*) -> Status {
    SendStream stream(link->EndToRank(rank, true, kPieceBytes, "piece of tensors"));
    std::span<std::byte> room;  // what is left of the piece
    for (const std::span<const float> tensor : tensors) {
      std::span<const std::byte> bytes = std::as_bytes(tensor);
      while (!bytes.empty()) {
        if (room.empty()) {
          RT_ASSIGN_OR_RETURN(room, stream.Room());
        }
        const size_t count = std::min(bytes.size(), room.size());
        std::memcpy(room.data(), bytes.data(), count);
        bytes = bytes.subspan(count);
        room = room.subspan(count);
        if (room.empty()) stream.Send();
      }
    }
    if (!room.empty()) {
      std::ranges::fill(room, std::byte{0});
      stream.Send();
    }
    return stream.Flush();
  });
}

Status ReceiveFrom(StageLink* link, int rank, std::span<const std::span<float>> tensors) {
  return link->world()->Run([&](Communicator*) -> Status {
    ReceiveStream stream(link->EndToRank(rank, false, kPieceBytes, "piece of tensors"));
    size_t total = 0;
    for (const std::span<float> tensor : tensors) total += tensor.size_bytes();
    stream.Expect(static_cast<int64_t>(CeilDivide(total, kPieceBytes)));
    std::span<const std::byte> message;  // what is left of the piece
    for (const std::span<float> tensor : tensors) {
      std::span<std::byte> bytes = std::as_writable_bytes(tensor);
      while (!bytes.empty()) {
        if (message.empty()) {
          RT_ASSIGN_OR_RETURN(message, stream.Next());
        }
        const size_t count = std::min(bytes.size(), message.size());
        std::memcpy(bytes.data(), message.data(), count);
        bytes = bytes.subspan(count);
        message = message.subspan(count);
        if (message.empty()) stream.Release();
      }
    }
    return OkStatus();
  });
}

std::span<const float> Floats(const TensorView& view) {
  return {reinterpret_cast<const float*>(view.data.data()), view.data.size() / sizeof(float)};
}

// In a file, or, where none can be made, in memory.
std::span<float> RoomFor(size_t elements, const std::string& folder, OwnedTensors* tensors) {
  const size_t bytes = elements * sizeof(float);
  auto file = ScratchFile::Create(folder, bytes);
  if (file.ok()) {
    tensors->file = *std::move(file);
    return {reinterpret_cast<float*>(tensors->file->bytes().data()), elements};
  }
  LogWarning(fmt::format("{}: the weights of other ranks are gathered in memory",
                         file.status().message()));
  tensors->memory = AlignedBuffer(bytes);
  return tensors->memory.floats().first(elements);
}

// What `source_rank` has of each tensor that each rank wants; empty: it stays as it is.
using FoundTensors = std::vector<std::vector<std::span<const float>>>;

StatusOr<FoundTensors> FindWanted(const std::vector<std::string>& wanted, const FindWhole& whole) {
  FoundTensors found(wanted.size());
  for (size_t rank = 0; rank < wanted.size(); ++rank) {
    for (const NamedShape& tensor : ParseLines(wanted[rank])) {
      RT_ASSIGN_OR_RETURN(const std::span<const float> values, whole(tensor.name, tensor.shape));
      found[rank].push_back(values);
    }
  }
  return found;
}

// For each tensor that ranks want, rank by rank: whether it comes.
std::vector<int64_t> WhichCome(const FoundTensors& found) {
  std::vector<int64_t> come;
  for (const auto& tensors : found) {
    for (const auto& values : tensors) come.push_back(values.empty() ? 0 : 1);
  }
  return come;
}

}  // namespace

StatusOr<OwnedTensors> GatherStages(StageLink* link, std::span<const TensorView> own,
                                    const std::string& folder) {
  TrainingWorld* const world = link->world();
  std::string lines;
  for (const TensorView& tensor : own) lines += LineOf(tensor.name, tensor.shape);
  RT_ASSIGN_OR_RETURN(const std::vector<std::string> all, world->GatherText(lines));
  const int stages = link->choice().shape.stages;
  if (!world->leads()) {
    if (world->rank() >= stages) return OwnedTensors();  // not of the first pipeline
    std::vector<std::span<const float>> values;
    for (const TensorView& tensor : own) values.push_back(Floats(tensor));
    RT_RETURN_IF_ERROR(SendTo(link, 0, values));
    return OwnedTensors();
  }
  OwnedTensors others;
  std::vector<std::vector<NamedShape>> by_stage(stages);
  size_t elements = 0;
  for (int stage = 1; stage < stages; ++stage) {
    by_stage[stage] = ParseLines(all[stage]);
    for (const NamedShape& tensor : by_stage[stage]) elements += NumElements(tensor.shape);
  }
  std::span<float> rest = RoomFor(elements, folder, &others);
  for (int stage = 1; stage < stages; ++stage) {
    std::vector<std::span<float>> places;
    for (const NamedShape& tensor : by_stage[stage]) {
      const auto count = static_cast<size_t>(NumElements(tensor.shape));
      places.push_back(rest.first(count));
      rest = rest.subspan(count);
      others.views.push_back(ViewF32(tensor.name, tensor.shape, places.back()));
    }
    RT_RETURN_IF_ERROR(ReceiveFrom(link, stage, places));
  }
  return others;
}

Status ScatterStages(StageLink* link, int source_rank, const FindWhole& whole,
                     TrainingState* state) {
  TrainingWorld* const world = link->world();
  const bool is_source = world->rank() == source_rank;
  RT_ASSIGN_OR_RETURN(
      const std::vector<int64_t> has,
      world->ShareNumbers({is_source && whole ? int64_t{1} : int64_t{0}}, source_rank));
  if (has[0] == 0) return OkStatus();
  const std::vector<StateSlot> slots = state->Slots();
  std::string wanted;
  for (const StateSlot& slot : slots) wanted += LineOf(slot.name, slot.spec->shape);
  RT_ASSIGN_OR_RETURN(const std::vector<std::string> all, world->GatherText(wanted));
  FoundTensors found;
  if (is_source) {
    RT_ASSIGN_OR_RETURN(found, FindWanted(all, whole));
  }
  RT_ASSIGN_OR_RETURN(const std::vector<int64_t> come,
                      world->ShareNumbers(WhichCome(found), source_rank));
  int64_t first = 0;  // of this rank's in `come`
  for (int rank = 0; rank < world->rank(); ++rank) first += std::ranges::count(all[rank], '\n');
  for (int rank = 0; rank < world->size(); ++rank) {
    if (rank == source_rank) continue;
    if (is_source) RT_RETURN_IF_ERROR(SendTo(link, rank, found[rank]));
    if (world->rank() != rank) continue;
    std::vector<std::span<float>> places;
    for (size_t i = 0; i < slots.size(); ++i) {
      if (come[first + i] != 0) places.push_back(slots[i].values);
    }
    RT_RETURN_IF_ERROR(ReceiveFrom(link, source_rank, places));
  }
  if (!is_source) return OkStatus();
  for (size_t i = 0; i < slots.size(); ++i) {
    std::ranges::copy(found[source_rank][i], slots[i].values.begin());
  }
  return OkStatus();
}

}  // namespace ringtail
