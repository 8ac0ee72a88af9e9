// Applies one operation to an image, for tests/compare/augment_with_torchvision.py:
//   data_pixel_operation_main OPERATION MAGNITUDE BILINEAR WIDTH HEIGHT < rgb > rgb
// OPERATION is a number of PixelOperation; BILINEAR is 0 or 1.
#include <cstdio>
#include <cstdlib>

#include "data/augmentation/pixel_operation.h"

namespace ringtail {
namespace {

constexpr int kArguments = 6;

int Run(char** argv) {
  const int operation = std::atoi(argv[1]), width = std::atoi(argv[4]), height = std::atoi(argv[5]);
  if (operation < 0 || operation >= kPixelOperations || width < 1 || height < 1) return 2;
  Image image, spare;
  image.Reset(width, height);
  if (std::fread(image.pixels.data(), 1, image.pixels.size(), stdin) != image.pixels.size())
    return 1;
  const PixelChange change = {.operation = static_cast<PixelOperation>(operation),
                              .magnitude = std::atof(argv[2]),
                              .bilinear = std::atoi(argv[3]) != 0};
  ChangePixels(change, &image, &spare);
  return std::fwrite(image.pixels.data(), 1, image.pixels.size(), stdout) == image.pixels.size()
             ? 0
             : 1;
}

}  // namespace
}  // namespace ringtail

int main(int argc, char** argv) { return argc == ringtail::kArguments ? ringtail::Run(argv) : 2; }
