// Numbers to measure codecs with, distributed like a gradient's.
// Thread-safety: a function without state. Cost: 65,536 numbers are drawn, the others are copies.
#ifndef RINGTAIL_DIST_COMPRESSION_SAMPLE_GRADIENT_H_
#define RINGTAIL_DIST_COMPRESSION_SAMPLE_GRADIENT_H_

#include <span>

namespace ringtail {

// Standard normal numbers, the same in every call.
void FillWithNormalNumbers(std::span<float> numbers);

}  // namespace ringtail

#endif  // RINGTAIL_DIST_COMPRESSION_SAMPLE_GRADIENT_H_
