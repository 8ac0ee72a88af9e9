// ServedRank: a worker whose servers are all on rank 0, behind real threads and a real WorkerLink.
// All weights are 1 at first; an update takes a gradient from them, divided by its images.
//
//   ServedRank rank(&world, {.rules = {{}, {}}});     two shards: weights, and biases
//   rank.Next();                                      tickets of 4 rows
//   rank.Push({4, 8, 12, 16, 20});                    three weights, two biases
//   rank.Served()                                     0, -1, -2, -3, -4
//
// Rank 0 answers itself at once, so that a world of one is a story that is always the same.
// Thread-safety: one thread.
#ifndef RINGTAIL_TESTS_APPS_TRAINER_ASYNCHRONOUS_SERVED_RANK_H_
#define RINGTAIL_TESTS_APPS_TRAINER_ASYNCHRONOUS_SERVED_RANK_H_

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "apps/trainer/asynchronous/worker_round.h"
#include "dist/parameter_server/wire/server_thread.h"
#include "tests/dist/parameter_server/wire/served_weights.h"
#include "tests/testing/parse_config.h"

namespace ringtail {

struct ServedSetup {
  std::vector<AsynchronousRule> rules = {{}};  // of each shard
  int64_t rows = 100;                          // of the run, and of its first round
  WorkerRound::Options round = {};
  std::string compression = {};  // of gradients; empty: none
};

class ServedRank {
 public:
  static constexpr int64_t kRows = 4, kCorrect = 3;  // of a push; the rows of a ticket
  static constexpr double kLoss = 6;                 // of a push

  ServedRank(TrainingWorld* world, const ServedSetup& setup)
      : world_(world),
        model_(ParameterArena::Create({{.name = "fc.weight",
                                        .shape = {1, kWeights},
                                        .kind = ParameterKind::kLinearWeight},
                                       {.name = "fc.bias", .shape = {kBiases}}},
                                      {{.name = "bn.mean", .shape = {1}}})
                   .value()) {
    WorkerRound::Options options = setup.round;
    if (!setup.compression.empty()) {
      layers_ =
          PushLayers(ParseConfig<CompressionConfig>(setup.compression), model_->parameters(), kRows)
              .value();
      memories_.emplace(model_.get(), layers_, LayerMemoryOptions());
      options.memories = &*memories_;
    }
    Place(setup.rules.size());
    link_ = std::make_unique<WorkerLink>(world->transport(),
                                         Servers(options.pull, setup.rules[0].synchronous()));
    if (world->leads()) Serve(setup, options);
    round_ = std::make_unique<WorkerRound>(world, link_.get(), &shards_, model_.get(), options);
  }
  ~ServedRank() { Leave(); }
  ServedRank(const ServedRank&) = delete;
  ServedRank& operator=(const ServedRank&) = delete;

  // Servers end once all workers have left.
  void Leave() {
    if (round_ == nullptr) return;
    round_->Leave();
    link_->Finish();
    threads_.clear();
    round_.reset();
  }

  StepWork Next(int signal = 0) { return round_->Next(signal).value(); }
  // Of all weights, then of all biases.
  void Push(const std::vector<float>& gradient, bool finite = true, int signal = 0) {
    SetEach(model_->grads(), gradient);
    const OwnStep own{.loss = {.loss_sum = kLoss, .correct = kCorrect, .count = kRows}};
    ASSERT_TRUE(round_->Push(own, finite, 1, signal).ok());
  }
  std::vector<float> model() const { return Each(model_->values()); }
  float* mean() { return model_->buffer_values().data(); }
  // On rank 0.
  std::vector<float> Served() const {
    return OfShards([this](size_t i) { return std::span(served_[i]->weights()); });
  }
  // With the gaps between parameters.
  std::span<const float> block(size_t shard) const { return served_[shard]->weights(); }
  std::vector<float> Snapshot() {
    const std::vector<int64_t> pushes = served_[0]->service()->Pushes(2);
    const std::vector<SharedBuffer> states = round_->TakeSnapshot(pushes).value();
    return OfShards([&](size_t i) { return std::span<const float>(states[i]->floats()); });
  }

  WorkerRound* round() { return round_.get(); }
  ServerThread* server(size_t i) { return threads_[i].get(); }
  UpdateCounts TakeCounts(size_t i) { return served_[i]->service()->TakeCounts(); }
  std::span<const float> residual() const { return memories_->residual(0); }

  // The next round, whose rows end there.
  void Open(int64_t end) {
    server(0)->Run([end](ShardService* service) { return service->Open(end); });
  }
  // Worker 1, which no transport reaches, computes with the next ticket. Its answers are dropped.
  void JoinAnother() {
    for (const auto& thread : threads_) {
      thread->Run([](ShardService* service) {
        service->Join(1, kRows);
        return std::vector<ServerReply>();
      });
    }
    AskAsAnother(0, {.kind = MessageKind::kAsk});
  }
  void PushAsAnother(size_t server, int64_t first_row, float gradient) {
    AskAsAnother(server, {.kind = MessageKind::kPush, .first = first_row, .rows = kRows},
                 BufferOf(std::vector<float>(served_[server]->weights().size(), gradient)));
  }

 private:
  static constexpr int64_t kWeights = 3, kBiases = 2;

  void Place(size_t shards) {
    const auto parameters = model_->parameters();
    for (size_t i = 0; i < shards; ++i) {
      const std::vector<size_t> chosen =
          shards == 1 ? std::vector<size_t>{0, 1} : std::vector<size_t>{i};
      shards_.push_back({.parameters = chosen,
                         .layout = ShardLayout(parameters, chosen),
                         .requests = Channel(100 + 2 * i),
                         .replies = Channel(101 + 2 * i)});
      if (layers_.empty()) continue;
      std::vector<PushCoding::Place> places;
      for (size_t j = 0; j < chosen.size(); ++j) {
        places.push_back({.parameter = chosen[j],
                          .model_offset = parameters[chosen[j]].offset,
                          .own_offset = shards_[i].layout.own_offset(j)});
      }
      shards_[i].coding = std::make_shared<PushCoding>(layers_, parameters, places, 1);
    }
  }
  std::vector<WorkerLink::Server> Servers(AsynchronousConfig::Pull pull,
                                          bool shares_statistics) const {
    std::vector<WorkerLink::Server> servers;
    for (const PlacedShard& shard : shards_) {
      const auto elements = static_cast<size_t>(shard.layout.elements());
      servers.push_back({.requests = shard.requests,
                         .replies = shard.replies,
                         .weight_bytes = elements * sizeof(float),
                         .statistics_bytes = shares_statistics && servers.empty()
                                                 ? model_->buffer_values().size_bytes()
                                                 : 0,
                         .coded = pull != AsynchronousConfig::F32,
                         .state_bytes = elements * sizeof(float)});
    }
    return servers;
  }
  void Serve(const ServedSetup& setup, const WorkerRound::Options& options) {
    for (size_t i = 0; i < shards_.size(); ++i) {
      const int64_t elements = shards_[i].layout.elements();
      pulls_.push_back(std::make_unique<PullEncoder>(options.pull, 128, elements));
      served_.push_back(std::make_unique<ServedWeights>(
          setup.rules[i], elements, setup.rows, /*first=*/i == 0,
          ServedOptions{
              .statistics = model_->buffer_values().size(),
              .coding = shards_[i].coding.get(),
              .pulls = options.pull == AsynchronousConfig::F32 ? nullptr : pulls_[i].get()}));
      ServerThread::Options serving{.requests = shards_[i].requests,
                                    .replies = shards_[i].replies,
                                    .own = link_->own_replies(i)};
      for (int worker = 0; worker < world_->size(); ++worker) {
        served_[i]->service()->Join(worker, options.computes ? kRows : 0);
        serving.workers.push_back(worker);
      }
      threads_.push_back(
          std::make_unique<ServerThread>(world_->transport(), served_[i]->service(), serving));
      link_->SetOwn(i, threads_[i].get());
    }
  }
  void AskAsAnother(size_t server, const ServerMessage& message, SharedBuffer gradient = nullptr) {
    ServerRequest request{.worker = 1, .message = message, .gradient = std::move(gradient)};
    if (server == 0) {
      request.statistics = BufferOf(std::vector<float>(model_->buffer_values().size()));
    }
    threads_[server]->Run([&](ShardService* service) {
      std::vector<ServerReply> replies = service->Handle(request);
      std::erase_if(replies, [](const ServerReply& reply) { return reply.worker == 1; });
      return replies;
    });
  }
  template <typename Read>
  std::vector<float> OfShards(const Read& read) const {
    std::vector<float> whole(model_->values().size());
    for (size_t i = 0; i < shards_.size(); ++i) shards_[i].layout.Scatter(read(i), whole);
    return Each(whole);
  }
  void SetEach(std::span<float> block, const std::vector<float>& values) const {
    for (int64_t i = 0; i < std::ssize(values); ++i) block[PlaceOf(i)] = values[i];
  }
  std::vector<float> Each(std::span<const float> block) const {
    std::vector<float> values;
    for (int64_t i = 0; i < kWeights + kBiases; ++i) values.push_back(block[PlaceOf(i)]);
    return values;
  }
  int64_t PlaceOf(int64_t i) const {
    return i < kWeights ? i : model_->parameters()[1].offset + i - kWeights;
  }

  TrainingWorld* const world_;
  const std::unique_ptr<ParameterArena> model_;
  std::vector<CompressedLayer> layers_;
  std::optional<LayerMemories> memories_;
  std::vector<PlacedShard> shards_;
  std::vector<std::unique_ptr<PullEncoder>> pulls_;
  std::vector<std::unique_ptr<ServedWeights>> served_;
  std::unique_ptr<WorkerLink> link_;
  std::vector<std::unique_ptr<ServerThread>> threads_;
  std::unique_ptr<WorkerRound> round_;
};

}  // namespace ringtail

#endif  // RINGTAIL_TESTS_APPS_TRAINER_ASYNCHRONOUS_SERVED_RANK_H_
