// Who is told while convolutions are measured, which may take minutes: a program that shows progress.
// Thread-safety: the trainer thread only.
#ifndef RINGTAIL_LAYERS_CONVOLUTION_MEASURING_NOTICE_H_
#define RINGTAIL_LAYERS_CONVOLUTION_MEASURING_NOTICE_H_

#include <functional>

namespace ringtail {

// `notice` is called after each direction of a convolution that was measured; empty: nothing is.
void SetMeasuringNotice(std::function<void()> notice);

// To be called then.
void NoticeMeasured();

}  // namespace ringtail

#endif  // RINGTAIL_LAYERS_CONVOLUTION_MEASURING_NOTICE_H_
