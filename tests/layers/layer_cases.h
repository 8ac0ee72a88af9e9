// Layer cases: the table of layers, shapes and numbers that every layer's generic tests run
// through. Each row runs in four layouts. Sizes are awkward on purpose: odd images, channels that
// fill no block.
#ifndef RINGTAIL_TESTS_LAYERS_LAYER_CASES_H_
#define RINGTAIL_TESTS_LAYERS_LAYER_CASES_H_

#include <string>
#include <vector>

#include "layers/layer.h"

namespace ringtail {

struct LayerCase {
  std::string name;           // "<kind>_<what is special>"
  std::string config;         // text of a LayerConfig: "relu {}"
  std::vector<BlobDesc> src;  // shapes
  Activation fused = Activation::kNone;
  float low = -1, high = 1;  // range of the inputs
  // Distance of the finite differences: small where the formula is curved or has kinks,
  // a power of two.
  float distance = 0x1p-6F;
  // For a convolution that asks for an algorithm: a part of Implementation() where blobs come in
  // blocks of the machine's vectors, so that the row checks what it says. "": any.
  std::string algorithm = {};
  double rounding = 1;  // of its result, as a multiple of a sum's
  // Whether the formula itself has kinks at dst = 0 or dst = 6, as ReLU's does; a fused activation
  // counts anyway.
  bool kinks = false;
};

// How the channels of a case's inputs are blocked: all alike, or each input in another way.
enum class Layout { kPlain, kBlock8, kBlock16, kMixed };
inline constexpr Layout kLayouts[] = {Layout::kPlain, Layout::kBlock8, Layout::kBlock16,
                                      Layout::kMixed};
std::string LayoutName(Layout layout);
std::vector<BlobDesc> InLayout(std::vector<BlobDesc> src, Layout layout);

const std::vector<LayerCase>& LayerCases();

}  // namespace ringtail

#endif  // RINGTAIL_TESTS_LAYERS_LAYER_CASES_H_
