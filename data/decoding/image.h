// Image: decoded pixels, RGB, 8 bits per channel, rows from the top, without gaps; ImageView: a
// rectangle of them. Value types without locks. Reset keeps the memory, so that a reused Image
// stops allocating.
#ifndef RINGTAIL_DATA_DECODING_IMAGE_H_
#define RINGTAIL_DATA_DECODING_IMAGE_H_

#include <cstddef>
#include <cstdint>
#include <vector>

namespace ringtail {

inline constexpr int32_t kChannels = 3;

struct Image {
  int32_t width = 0, height = 0;
  std::vector<uint8_t> pixels;  // height * width * kChannels

  void Reset(int32_t new_width, int32_t new_height) {
    width = new_width;
    height = new_height;
    pixels.resize(static_cast<size_t>(width) * height * kChannels);
  }
  uint8_t* Row(int32_t y) { return pixels.data() + static_cast<size_t>(y) * width * kChannels; }
  const uint8_t* Row(int32_t y) const {
    return pixels.data() + static_cast<size_t>(y) * width * kChannels;
  }
};

// Borrowed pixels: valid as long as their Image exists and is not reset.
struct ImageView {
  const uint8_t* pixels = nullptr;
  int32_t width = 0, height = 0;
  size_t row_bytes = 0;  // distance from one row to the next

  ImageView() = default;
  ImageView(const Image& image, int32_t x, int32_t y, int32_t view_width, int32_t view_height)
      : pixels(image.Row(y) + static_cast<size_t>(x) * kChannels),
        width(view_width),
        height(view_height),
        row_bytes(static_cast<size_t>(image.width) * kChannels) {}
  explicit ImageView(const Image& image) : ImageView(image, 0, 0, image.width, image.height) {}
};

}  // namespace ringtail

#endif  // RINGTAIL_DATA_DECODING_IMAGE_H_
