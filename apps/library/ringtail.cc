// The functions of ringtail.h, which are all that libringtail.so shows: no exception, no log line
// and no symbol of C++ leaves it.
#include "apps/library/ringtail.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "apps/library/classifier.h"
#include "apps/version.h"
#include "core/logging.h"
#include "core/status.h"
#include "data/decoding/image.h"
#include "data/decoding/opencv_settings.h"

struct ringtail_model {
  std::unique_ptr<ringtail::Classifier> classifier;
};

namespace ringtail {
namespace {

static_assert(std::string_view(RINGTAIL_VERSION) == kRingtailVersion);

constexpr int kFailure = -1;

std::string& LastError() {
  thread_local std::string error;
  return error;
}

// Runs `call`, which returns a Status; 0 or kFailure.
template <typename Call>
int Guarded(const Call& call) noexcept {
  try {
    try {
      const Status status = call();
      if (status.ok()) return 0;
      LastError() = status.message();
    } catch (const std::exception& error) {
      LastError() = std::string("ringtail: ") + error.what();
    }
  } catch (...) {  // no memory for the sentence
    LastError().clear();
  }
  return kFailure;
}

// Of this process: what belongs to the program is left alone.
void PrepareOnce() {
  static const bool prepared = [] {
    SilenceLog();
    KeepOpenCvSettings();
    return true;
  }();
  (void)prepared;
}

Status NullArgument(const char* what) { return InvalidArgument(fmt::format("{} is NULL", what)); }

// Of `model`, by `classify`, which takes a Classifier*.
template <typename Classify>
int Probabilities(ringtail_model* model, double* probabilities, int count,
                  const Classify& classify) noexcept {
  return Guarded([&]() -> Status {
    if (model == nullptr) return NullArgument("the model");
    if (probabilities == nullptr) return NullArgument("the array of probabilities");
    Classifier* const classifier = model->classifier.get();
    const int64_t classes = std::ssize(classifier->class_names());
    if (count != classes) {
      return InvalidArgument(fmt::format(
          "there is room for {} probabilities, and the network has {} classes", count, classes));
    }
    RT_ASSIGN_OR_RETURN(const std::vector<double> computed, classify(classifier));
    std::copy(computed.begin(), computed.end(), probabilities);
    return OkStatus();
  });
}

StatusOr<ImageView> ViewOf(const unsigned char* pixels, int height, int width, size_t stride) {
  if (pixels == nullptr) return NullArgument("the array of pixels");
  if (height < 1 || width < 1) {
    return InvalidArgument(fmt::format("the image in memory is {} x {} pixels", width, height));
  }
  const size_t row_bytes = static_cast<size_t>(width) * kChannels;
  if (stride != 0 && stride < row_bytes) {
    return InvalidArgument(fmt::format("a row of {} pixels has {} bytes, and the stride is {}",
                                       width, row_bytes, stride));
  }
  ImageView view;
  view.pixels = pixels;
  view.width = width;
  view.height = height;
  view.row_bytes = stride != 0 ? stride : row_bytes;
  return view;
}

}  // namespace
}  // namespace ringtail

using ringtail::Classifier;
using ringtail::OkStatus;
using ringtail::Status;

const char* ringtail_version(void) { return ringtail::kRingtailVersion; }

const char* ringtail_last_error(void) { return ringtail::LastError().c_str(); }

ringtail_model* ringtail_open(const char* path, int threads) {
  std::unique_ptr<ringtail_model> model;
  ringtail::Guarded([&]() -> Status {
    if (path == nullptr) return ringtail::NullArgument("the path of the network");
    ringtail::PrepareOnce();
    RT_ASSIGN_OR_RETURN(auto classifier, Classifier::Open(path, threads));
    model = std::make_unique<ringtail_model>(ringtail_model{std::move(classifier)});
    return OkStatus();
  });
  return model.release();
}

void ringtail_close(ringtail_model* model) {
  if (model == nullptr) return;
  Classifier::Close(std::move(model->classifier));
  delete model;
}

int ringtail_class_count(const ringtail_model* model) {
  int count = ringtail::kFailure;
  ringtail::Guarded([&]() -> Status {
    if (model == nullptr) return ringtail::NullArgument("the model");
    count = static_cast<int>(model->classifier->class_names().size());
    return OkStatus();
  });
  return count;
}

const char* ringtail_class_name(const ringtail_model* model, int k) {
  const char* name = nullptr;
  ringtail::Guarded([&]() -> Status {
    if (model == nullptr) return ringtail::NullArgument("the model");
    const auto& names = model->classifier->class_names();
    if (k < 0 || k >= std::ssize(names)) {
      return ringtail::InvalidArgument(
          fmt::format("there is no class {}: the network has {} classes", k, names.size()));
    }
    name = names[k].c_str();
    return OkStatus();
  });
  return name;
}

int ringtail_classify_file(ringtail_model* model, const char* path, double* probabilities,
                           int count) {
  return ringtail::Probabilities(
      model, probabilities, count,
      [&](Classifier* classifier) -> ringtail::StatusOr<std::vector<double>> {
        if (path == nullptr) return ringtail::NullArgument("the path of the image");
        return classifier->ClassifyFile(path);
      });
}

int ringtail_classify_encoded(ringtail_model* model, const void* bytes, size_t size,
                              double* probabilities, int count) {
  return ringtail::Probabilities(
      model, probabilities, count,
      [&](Classifier* classifier) -> ringtail::StatusOr<std::vector<double>> {
        if (bytes == nullptr) return ringtail::NullArgument("the content of the image");
        return classifier->ClassifyEncoded({static_cast<const std::byte*>(bytes), size});
      });
}

int ringtail_classify_rgb(ringtail_model* model, const unsigned char* pixels, int height, int width,
                          size_t stride, double* probabilities, int count) {
  return ringtail::Probabilities(
      model, probabilities, count,
      [&](Classifier* classifier) -> ringtail::StatusOr<std::vector<double>> {
        RT_ASSIGN_OR_RETURN(const ringtail::ImageView view,
                            ringtail::ViewOf(pixels, height, width, stride));
        return classifier->ClassifyPixels(view);
      });
}
