#include "apps/library/classifier.h"

#include <fmt/core.h>
#include <unistd.h>

#include <utility>

#include "apps/trainer/checkpoint/network_of_run.h"
#include "core/aligned_buffer.h"
#include "core/machine/thread_budget.h"
#include "core/machine/thread_limit.h"
#include "core/parallel_for.h"
#include "core/storage/file.h"
#include "core/text/counted.h"

namespace ringtail {
namespace {

constexpr int64_t kBytesPerMib = 1 << 20;
constexpr int kMostThreads = 4096;

// As UseThreads (apps/dogs_vs_cats/config_flags.h), which decides for a program of ours.
int TeamOf(int asked, const RunConfig& config) {
  const int wanted = asked > 0 ? asked : config.train().threads();
  return SplitCores(UsableCores(), wanted, config.data().workers()).compute;
}

std::vector<std::string> NamesOfOutputs(const TrainedModel& trained) {
  std::vector<std::string> names = trained.class_names;
  names.resize(trained.model->num_classes());
  for (size_t k = trained.class_names.size(); k < names.size(); ++k) {
    names[k] = fmt::format("class {}", k);
  }
  return names;
}

}  // namespace

StatusOr<std::unique_ptr<Classifier>> Classifier::Open(const std::string& path, int threads) {
  if (threads < 0 || threads > kMostThreads) {
    return InvalidArgument(fmt::format(
        "{} compute threads; use 1 .. {}, or 0 for those of `predict`", threads, kMostThreads));
  }
  RT_ASSIGN_OR_RETURN(const std::string file, NetworkFile(path));
  std::unique_ptr<Classifier> classifier(new Classifier);
  classifier->process_ = getpid();
  RT_ASSIGN_OR_RETURN(classifier->thread_, ComputeThread::Start());
  Status loaded;
  classifier->thread_->Run([&] { loaded = classifier->Load(file, threads); });
  RT_RETURN_IF_ERROR(loaded);
  return classifier;
}

void Classifier::Close(std::unique_ptr<Classifier> classifier) {
  if (classifier != nullptr && classifier->process_ != getpid()) (void)classifier.release();
}

Status Classifier::Load(const std::string& file, int threads) {
  RT_ASSIGN_OR_RETURN(trained_, ReadModelFile(file, {}));
  const RunConfig& config = trained_.loaded.config;
  const int team = TeamOf(threads, config);
  RT_RETURN_IF_ERROR(CheckThreadsCanStart(team - 1, Counted(team, "compute thread")));
  SetNumComputeThreads(team);
  options_ = EvaluationOptionsOf(config);
  class_names_ = NamesOfOutputs(trained_);
  RT_ASSIGN_OR_RETURN(net_, CreateEvaluationNet(trained_.model.get(), /*images=*/1, options_));
  return OkStatus();
}

Status Classifier::CheckProcess() const {
  if (getpid() == process_) return OkStatus();
  return FailedPrecondition(fmt::format(
      "the network was opened by process {}, and this is its child {}, which has none of its "
      "threads; open the network in the child, after fork()",
      process_, getpid()));
}

StatusOr<std::vector<double>> Classifier::ClassifyFile(const std::string& path) {
  RT_RETURN_IF_ERROR(CheckProcess());
  RT_ASSIGN_OR_RETURN(const auto bytes,
                      ReadFileBytes(path, data().bad_images().max_file_mib() * kBytesPerMib));
  return Classify(EvaluationImage::Decode(bytes, data(), options_.image_size),
                  fmt::format("'{}'", path));
}

StatusOr<std::vector<double>> Classifier::ClassifyEncoded(std::span<const std::byte> bytes) {
  RT_RETURN_IF_ERROR(CheckProcess());
  return Classify(EvaluationImage::Decode(bytes, data(), options_.image_size),
                  "the image in memory");
}

StatusOr<std::vector<double>> Classifier::ClassifyPixels(const ImageView& rgb) {
  RT_RETURN_IF_ERROR(CheckProcess());
  return Classify(EvaluationImage::FromPixels(rgb, data(), options_.image_size),
                  "the image in memory");
}

// As ComputeLogits (apps/trainer/evaluation.h), of one image.
StatusOr<std::vector<double>> Classifier::Classify(const StatusOr<EvaluationImage>& image,
                                                   const std::string& name) {
  if (!image.ok()) return Status(image.status().code(), name + " " + image.status().message());
  const int views = options_.flipped ? 2 : 1;
  const int64_t row_floats = kChannels * options_.image_size * options_.image_size;
  std::vector<AlignedBuffer> pixels;
  for (int view = 0; view < views; ++view) {
    pixels.emplace_back(row_floats * sizeof(float));
    image->Render(/*flip=*/view == 1, pixels.back().floats().data());
  }
  std::vector<float> sum(class_names_.size(), 0);
  thread_->Run([&] {
    const std::vector<int32_t> labels = {-1};
    const float scale = 1.0F / static_cast<float>(views);
    for (const AlignedBuffer& view : pixels) {
      net_->Forward({view.floats().data(), labels}, {.training = false});
      for (size_t k = 0; k < sum.size(); ++k) sum[k] += scale * net_->logits()[k];
    }
  });
  return Softmax(sum);
}

}  // namespace ringtail
