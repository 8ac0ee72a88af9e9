#include "dist/transport/grpc/greeter.h"

#include <fmt/format.h>

#include <array>
#include <string>

#include "dist/transport/frames/frame.h"
#include "dist/transport/frames/keyed_hash.h"

namespace ringtail {

OutgoingFrame Greeter::HelloTo(int peer, bool urgent) const {
  Hello hello{
      .rank = peers_.rank, .peer = peer, .world_size = peers_.world_size(), .urgent = urgent};
  hello.proof = HelloProof(peers_.secret, peers_.generation, hello);
  return ControlFrame(FrameKind::kHello, peers_.generation, HelloPayload(hello));
}

StatusOr<Hello> Greeter::Read(ByteCursor* bytes) const {
  std::array<std::byte, kFrameHeaderBytes> encoded;
  if (!bytes->Read(encoded)) return DataLoss("less than a frame");
  RT_ASSIGN_OR_RETURN(const FrameHeader header, DecodeHeader(encoded));
  if (header.kind != FrameKind::kHello) return DataLoss("no hello");
  if (header.generation != peers_.generation) {
    return FailedPrecondition(fmt::format("this is generation {} of the job, not {}",
                                          peers_.generation, header.generation));
  }
  RT_ASSIGN_OR_RETURN(const std::string payload, ReadControlPayload(header, bytes));
  RT_ASSIGN_OR_RETURN(const Hello hello, ParseHello(payload));
  if (hello.peer != peers_.rank) {
    return FailedPrecondition(fmt::format("this is rank {}, not {}", peers_.rank, hello.peer));
  }
  if (hello.world_size != peers_.world_size()) {
    return FailedPrecondition(
        fmt::format("this world has {} ranks, not {}", peers_.world_size(), hello.world_size));
  }
  if (!EqualInConstantTime(hello.proof, HelloProof(peers_.secret, peers_.generation, hello))) {
    return Status(StatusCode::kPermissionDenied, "the hello does not prove the job's secret");
  }
  return hello;
}

Status Greeter::CheckAnswer(const StatusOr<Hello>& hello, int peer, bool urgent) const {
  if (hello.ok() && hello->rank == peer && hello->urgent == urgent) return OkStatus();
  return FailedPrecondition(fmt::format(
      "what answers at {} is not rank {}: {}", peers_.addresses[peer], peer,
      hello.ok() ? fmt::format("it is rank {}", hello->rank) : hello.status().message()));
}

Status Greeter::CheckNewcomer(const Hello& hello) const {
  if (hello.rank > peers_.rank && hello.rank < peers_.world_size()) return OkStatus();
  return FailedPrecondition(fmt::format("rank {} does not dial rank {}", hello.rank, peers_.rank));
}

}  // namespace ringtail
