#include "dist/membership/identity/rank_facts.h"

#include <fmt/format.h>

#include "dist/membership/membership.pb.h"

namespace ringtail {
namespace {

constexpr size_t kMaxTextBytes = 1024;

void Encode(const FingerprintFields& fields, google::protobuf::RepeatedPtrField<Field>* to) {
  for (const FingerprintField& field : fields) {
    Field* const added = to->Add();
    added->set_name(field.name);
    added->set_value(field.value);
  }
}

FingerprintFields Decode(const google::protobuf::RepeatedPtrField<Field>& from) {
  FingerprintFields fields;
  for (const Field& field : from) fields.push_back({.name = field.name(), .value = field.value()});
  return fields;
}

void Encode(const RankFacts& facts, RankFactsMessage* to) {
  to->set_rank(facts.rank);
  to->set_world_size(facts.world_size);
  to->set_generation(facts.generation);
  to->set_instance(facts.instance);
  to->set_host_name(facts.host_name);
  to->set_host_key(facts.host_key);
  to->set_memory_key(facts.memory_key);
  to->set_pid(facts.pid);
  to->set_own_address(facts.own_address);
  to->set_master_address(facts.master_address);
  Encode(facts.fingerprint, to->mutable_fingerprint());
  Encode(facts.about, to->mutable_about());
}

StatusOr<RankFacts> Decode(const RankFactsMessage& from) {
  for (const std::string* text :
       {&from.instance(), &from.host_name(), &from.host_key(), &from.memory_key(),
        &from.own_address(), &from.master_address()}) {
    if (text->size() > kMaxTextBytes) return InvalidArgument("a name that is too long");
  }
  if (from.world_size() < 1 || from.world_size() > kMaxWorldSize ||
      from.rank() >= from.world_size()) {
    return InvalidArgument(fmt::format("rank {} of {}", from.rank(), from.world_size()));
  }
  RankFacts facts{.rank = static_cast<int>(from.rank()),
                  .world_size = static_cast<int>(from.world_size()),
                  .generation = from.generation(),
                  .instance = from.instance(),
                  .host_name = from.host_name(),
                  .host_key = from.host_key(),
                  .memory_key = from.memory_key(),
                  .pid = from.pid(),
                  .own_address = from.own_address(),
                  .master_address = from.master_address(),
                  .fingerprint = Decode(from.fingerprint()),
                  .about = Decode(from.about())};
  RT_RETURN_IF_ERROR(CheckFields(facts.fingerprint));
  RT_RETURN_IF_ERROR(CheckFields(facts.about));
  return facts;
}

}  // namespace

std::string RankFacts::DescribeHost() const { return fmt::format("{}, pid {}", host_name, pid); }
std::string RankFacts::Describe() const {
  return fmt::format("rank {} ({})", rank, DescribeHost());
}

std::string EncodeFacts(const RankFacts& facts) {
  RankFactsMessage message;
  Encode(facts, &message);
  return message.SerializeAsString();
}

StatusOr<RankFacts> DecodeFacts(const std::string& bytes) {
  RankFactsMessage message;
  if (!message.ParseFromString(bytes)) return DataLoss("facts about a rank that cannot be read");
  return Decode(message);
}

std::string EncodeWorldTable(const WorldTable& table) {
  WorldMessage message;
  message.set_generation(table.generation);
  message.set_salt(table.salt);
  for (size_t rank = 0; rank < table.ranks.size(); ++rank) {
    JoinedRankMessage* const joined = message.add_ranks();
    joined->set_address(table.addresses[rank]);
    Encode(table.ranks[rank], joined->mutable_facts());
    joined->mutable_facts()->clear_fingerprint();
  }
  return message.SerializeAsString();
}

StatusOr<WorldTable> DecodeWorldTable(const std::string& bytes) {
  WorldMessage message;
  if (!message.ParseFromString(bytes)) return DataLoss("a list of ranks that cannot be read");
  WorldTable table{.generation = message.generation(), .salt = message.salt()};
  for (const JoinedRankMessage& joined : message.ranks()) {
    RT_ASSIGN_OR_RETURN(RankFacts facts, Decode(joined.facts()));
    if (facts.rank != static_cast<int>(table.ranks.size()) ||
        facts.world_size != message.ranks_size()) {
      return DataLoss("a list of ranks that has gaps");
    }
    table.ranks.push_back(std::move(facts));
    table.addresses.push_back(joined.address());
  }
  return table;
}

}  // namespace ringtail
