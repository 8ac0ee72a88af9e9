// Classifier: a trained network that classifies images one by one, in a program that is not ours.
//
//   RT_ASSIGN_OR_RETURN(const auto classifier, Classifier::Open("runs/first", /*threads=*/0));
//   RT_ASSIGN_OR_RETURN(const std::vector<double> p, classifier->ClassifyFile("cat.jpg"));
//
// An image gets the bits that `predict` computes of it alone, with as many threads: the same
// decoder, crop, mirror image (if the run has train.evaluate_flipped), net, algorithms and softmax.
// (For the batches of `evaluate` other algorithms of convolution may be faster, whose last digits
// differ: layers/algorithm_choices.h.)
//
// Thread-safety: any thread; images are decoded by the threads that call, and computed one after
// another (apps/library/compute_thread.h). FailedPrecondition in a process that was forked after
// Open. Errors: sentences that name the file or image. Cost: Open reads the network and plans its
// memory; a call decodes and computes one image.
#ifndef RINGTAIL_APPS_LIBRARY_CLASSIFIER_H_
#define RINGTAIL_APPS_LIBRARY_CLASSIFIER_H_

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "apps/library/compute_thread.h"
#include "apps/trainer/checkpoint/model_file.h"
#include "apps/trainer/evaluation.h"
#include "core/status.h"
#include "data/decoding/image.h"
#include "data/evaluation_image.h"
#include "layers/net/net.h"

namespace ringtail {

class Classifier {
 public:
  // `path`: a file that `train` wrote, or the folder of a run. `threads`: compute threads; 0 takes
  // train.threads of the run, else the cores that the process may use.
  static StatusOr<std::unique_ptr<Classifier>> Open(const std::string& path, int threads);
  // Frees everything but in a forked child, which must not.
  static void Close(std::unique_ptr<Classifier> classifier);

  // Probabilities have this order. A class without a name is "class 5", as in `predict`.
  const std::vector<std::string>& class_names() const { return class_names_; }

  // Each gives the probability of each class.
  StatusOr<std::vector<double>> ClassifyFile(const std::string& path);
  StatusOr<std::vector<double>> ClassifyEncoded(std::span<const std::byte> bytes);
  StatusOr<std::vector<double>> ClassifyPixels(const ImageView& rgb);

 private:
  Classifier() = default;
  Status Load(const std::string& file, int threads);  // on thread_
  Status CheckProcess() const;
  StatusOr<std::vector<double>> Classify(const StatusOr<EvaluationImage>& image,
                                         const std::string& name);
  const DataConfig& data() const { return trained_.loaded.config.data(); }

  pid_t process_ = 0;  // that opened it
  TrainedModel trained_;
  EvaluationOptions options_;
  std::vector<std::string> class_names_;
  std::unique_ptr<Net> net_;  // for one image
  std::unique_ptr<ComputeThread> thread_;
};

}  // namespace ringtail

#endif  // RINGTAIL_APPS_LIBRARY_CLASSIFIER_H_
