#include "apps/plan/measure_together.h"

#include <fmt/format.h>
#include <google/protobuf/descriptor.h>
#include <google/protobuf/message.h>

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "apps/plan/run_network.h"
#include "apps/trainer/set_up_in_turn.h"
#include "dist/liveness/progress.h"
#include "dist/planner/slowest_of.h"

namespace ringtail {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;

// Adds `share` of each number with a fraction of `other` to `sum`. False if the two have other fields or
// lists of another length.
bool AddShare(const Message& other, double share, Message* sum);

bool AddShareOfField(const Message& other, const FieldDescriptor* field, double share,
                     Message* sum) {
  const google::protobuf::Reflection* const of = sum->GetReflection();
  const bool is_double = field->cpp_type() == FieldDescriptor::CPPTYPE_DOUBLE;
  const bool is_message = field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE;
  if (!field->is_repeated()) {
    if (is_double) {
      of->SetDouble(sum, field, of->GetDouble(*sum, field) + share * of->GetDouble(other, field));
    }
    return !is_message ||
           AddShare(of->GetMessage(other, field), share, of->MutableMessage(sum, field));
  }
  const int count = of->FieldSize(*sum, field);
  if (of->FieldSize(other, field) != count) return false;
  for (int i = 0; i < count; ++i) {
    if (is_double) {
      of->SetRepeatedDouble(
          sum, field, i,
          of->GetRepeatedDouble(*sum, field, i) + share * of->GetRepeatedDouble(other, field, i));
    } else if (is_message && !AddShare(of->GetRepeatedMessage(other, field, i), share,
                                       of->MutableRepeatedMessage(sum, field, i))) {
      return false;
    }
  }
  return true;
}

std::vector<const FieldDescriptor*> FieldsOf(const Message& message) {
  std::vector<const FieldDescriptor*> fields;
  message.GetReflection()->ListFields(message, &fields);
  return fields;
}

bool AddShare(const Message& other, double share, Message* sum) {
  const std::vector<const FieldDescriptor*> fields = FieldsOf(*sum);
  if (FieldsOf(other) != fields) return false;
  for (const FieldDescriptor* const field : fields) {
    if (!AddShareOfField(other, field, share, sum)) return false;
  }
  return true;
}

}  // namespace

StatusOr<PlannerFacts> MeanFacts(std::span<const PlannerFacts> facts) {
  PlannerFacts mean = facts.front();
  // mean_k = mean_(k-1) + (x_k - mean_(k-1)) / k
  for (size_t k = 1; k < facts.size(); ++k) {
    const double share = 1 / static_cast<double>(k + 1);
    const PlannerFacts before = mean;
    if (!AddShare(facts[k], share, &mean) || !AddShare(before, -share, &mean)) {
      return InvalidArgument(
          fmt::format("facts 0 and {} are of different networks, batches or schemes", k));
    }
  }
  return mean;
}

StatusOr<PlannerFacts> MeasureTogether(const LoadedConfig& loaded, MeasureFactsOptions options,
                                       TrainingWorld* world) {
  const ScopedPhase measuring(world->progress(), Phase::kSetUp);
  options.ranks_here = RanksHere(*world);
  options.set_up = [world](int64_t batch, int64_t image_size,
                           const std::function<Status()>& create) -> Status {
    RT_RETURN_IF_ERROR(
        SetUpInTurn(world, fmt::format("batch {} of {} pixels", batch, image_size), create));
    return world->Barrier();  // steps begin at the same time
  };
  if (!world->alone()) {
    options.deviation = [world](const std::vector<double>& step_s) -> StatusOr<double> {
      RT_ASSIGN_OR_RETURN(const auto of_all, world->GatherNumbers(step_s));
      return DeviationOfRanks(of_all);
    };
  }
  return MeasureFacts(loaded, options);
}

StatusOr<PlannerFacts> MeasureCluster(const LoadedConfig& loaded,
                                      const MeasureFactsOptions& options, TrainingWorld* world) {
  if (world->alone()) return MeasureFacts(loaded, options);
  RT_ASSIGN_OR_RETURN(const NetworkFacts network, NetworkOf(*world));
  RT_RETURN_IF_ERROR(world->Barrier());
  RT_ASSIGN_OR_RETURN(const PlannerFacts own, MeasureTogether(loaded, options, world));
  RT_ASSIGN_OR_RETURN(const auto texts, world->GatherText(own.SerializeAsString()));
  std::vector<PlannerFacts> all(texts.size());
  for (size_t rank = 0; rank < texts.size(); ++rank) {
    if (!all[rank].ParseFromString(texts[rank])) {
      return DataLoss(fmt::format("rank {} sends facts that are none", rank));
    }
  }
  auto mean = MeanFacts(all);
  if (!mean.ok()) return mean.status().Annotate("what ranks have measured");
  network.CopyTo(mean->mutable_cluster());
  return mean;
}

}  // namespace ringtail
