#include "layers/convolution/measuring_notice.h"

#include <utility>

namespace ringtail {
namespace {

std::function<void()>& TheNotice() {
  static auto* const notice = new std::function<void()>;  // never destroyed
  return *notice;
}

}  // namespace

void SetMeasuringNotice(std::function<void()> notice) { TheNotice() = std::move(notice); }

void NoticeMeasured() {
  if (TheNotice()) TheNotice()();
}

}  // namespace ringtail
