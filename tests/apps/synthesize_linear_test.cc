// Colours and brightness at fixed places must not suffice to classify the drawn images: a linear
// model on their pixels has to stay below 75 % on unseen images.
//
// Procedure: 1,000 training and 500 evaluation images of each species (one seed, different
// numbers), shrunk to 32x32 RGB by area averaging, each feature centred and divided by its
// deviation over the training images; logistic regression by gradient descent with momentum over
// all training images, once without and once with L2 decay. The better of the two counts.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <opencv2/core/utility.hpp>
#include <opencv2/imgproc.hpp>

#include "apps/synthesize/image.h"
#include "core/parallel_for.h"

namespace ringtail {
namespace {

constexpr int kSide = 32, kFeatures = kSide * kSide * 3;
constexpr int64_t kTrainPerSpecies = 1000, kTestPerSpecies = 500;
constexpr int kDescentSteps = 200;
constexpr float kRate = 5e-3F, kMomentum = 0.9F;

struct Samples {
  std::vector<float> features;  // count x kFeatures
  std::vector<float> labels;    // 0 or 1
  int64_t count() const { return static_cast<int64_t>(labels.size()); }
  float* row(int64_t i) { return features.data() + i * kFeatures; }
  const float* row(int64_t i) const { return features.data() + i * kFeatures; }
};

// Images `first` .. of each species; odd samples are dogs.
Samples Draw(int64_t first, int64_t per_species) {
  Samples samples;
  samples.features.resize(2 * per_species * kFeatures);
  samples.labels.resize(2 * per_species);
  ParallelFor(samples.count(), 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const Species species = i % 2 == 0 ? Species::kCat : Species::kDog;
      const RngKey key = RngKey(1).With(kSynthesizeStream).With(i % 2).With(first + i / 2);
      cv::Mat small(kSide, kSide, CV_32FC3, samples.row(i)), image;
      cv::resize(DrawImage(species, key), image, small.size(), 0, 0, cv::INTER_AREA);
      samples.labels[i] = static_cast<float>(i % 2);
      image.convertTo(small, CV_32F);
    }
  });
  return samples;
}

// Shifts and scales the features of both sets to mean 0 and deviation 1 over `train`.
void Standardize(Samples* train, Samples* test) {
  for (int k = 0; k < kFeatures; ++k) {
    double sum = 0, squares = 0;
    for (int64_t i = 0; i < train->count(); ++i) {
      sum += train->row(i)[k];
      squares += static_cast<double>(train->row(i)[k]) * train->row(i)[k];
    }
    const double n = static_cast<double>(train->count()), mean = sum / n;
    const double deviation = std::sqrt(std::max(squares / n - mean * mean, 1e-6));
    for (Samples* set : {train, test}) {
      for (int64_t i = 0; i < set->count(); ++i) {
        set->row(i)[k] = static_cast<float>((set->row(i)[k] - mean) / deviation);
      }
    }
  }
}

float Score(const std::vector<float>& weights, const float* row) {
  float score = 0;
#pragma omp simd reduction(+ : score)
  for (int k = 0; k < kFeatures; ++k) score += weights[k] * row[k];
  return score;
}

// The features are centred and the classes equal, so there is no bias.
std::vector<float> TrainLogisticRegression(const Samples& train, float decay) {
  std::vector<float> weights(kFeatures), velocity(kFeatures), gradient(kFeatures);
  for (int step = 0; step < kDescentSteps; ++step) {
    std::fill(gradient.begin(), gradient.end(), 0.0F);
    for (int64_t i = 0; i < train.count(); ++i) {
      const float* row = train.row(i);
      const float error = 1 / (1 + std::exp(-Score(weights, row))) - train.labels[i];
#pragma omp simd
      for (int k = 0; k < kFeatures; ++k) gradient[k] += error * row[k];
    }
    for (int k = 0; k < kFeatures; ++k) {
      const float mean = gradient[k] / static_cast<float>(train.count());
      velocity[k] = kMomentum * velocity[k] + mean + decay * weights[k];
      weights[k] -= kRate * velocity[k];
    }
  }
  return weights;
}

double Accuracy(const std::vector<float>& weights, const Samples& samples) {
  int64_t correct = 0;
  for (int64_t i = 0; i < samples.count(); ++i) {
    correct += (Score(weights, samples.row(i)) > 0) == (samples.labels[i] > 0.5F);
  }
  return static_cast<double>(correct) / static_cast<double>(samples.count());
}

struct Result {
  double train = 0, test = 0;  // the best with and without decay
};

Result BestLinearModel(Samples train, Samples test) {
  Standardize(&train, &test);
  Result best;
  for (const float decay : {0.0F, 0.1F}) {
    const std::vector<float> weights = TrainLogisticRegression(train, decay);
    best.train = std::max(best.train, Accuracy(weights, train));
    best.test = std::max(best.test, Accuracy(weights, test));
  }
  return best;
}

class SynthesizeLinearTest : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    cv::setNumThreads(1);  // the images are the parallelism
    train_ = Draw(0, kTrainPerSpecies);
    test_ = Draw(kTrainPerSpecies, kTestPerSpecies);
  }
  inline static Samples train_, test_;
};

TEST_F(SynthesizeLinearTest, LinearModelStaysBelowThreeQuarters) {
  const Result best = BestLinearModel(train_, test_);
  RecordProperty("train_accuracy", std::to_string(best.train));
  RecordProperty("test_accuracy", std::to_string(best.test));
  EXPECT_GT(best.train, 0.75) << "the model must have learned what there is to learn";
  EXPECT_LT(best.test, 0.75);
}

TEST_F(SynthesizeLinearTest, ProcedureFindsALinearDifferenceWhereThereIsOne) {
  constexpr float kLighter = 60;  // of 255
  Samples train = train_, test = test_;
  for (Samples* set : {&train, &test}) {
    for (int64_t dog = 1; dog < set->count(); dog += 2) {
      for (int k = 0; k < kFeatures; ++k) set->row(dog)[k] += kLighter;
    }
  }
  EXPECT_GT(BestLinearModel(std::move(train), std::move(test)).test, 0.8);
}

}  // namespace
}  // namespace ringtail
