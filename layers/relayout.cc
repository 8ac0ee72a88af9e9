#include "layers/relayout.h"

#include <algorithm>
#include <cstring>

#include "core/check.h"
#include "layers/element_types/blob_elements.h"
#include "layers/kernels/relayout.h"
#include "layers/parallel_blobs.h"

namespace ringtail {
namespace {

// Calls fn(sample, first channel, channels) for every channel block of every sample, in parallel.
template <typename Function>
void ForEachBlockedChannels(const BlobDesc& blocked, const Function& fn) {
  const int64_t blocks = blocked.channel_blocks();
  ForEachChannelBlock(blocked, [&](int64_t i) {
    const int64_t c = i % blocks * blocked.block;
    fn(i / blocks, c, std::min(blocked.block, blocked.C - c));
  });
}

int64_t Offset(const BlobDesc& desc, int64_t n, int64_t c) {
  return (n * desc.channel_blocks() + c / desc.block) * desc.plane() * desc.block + c % desc.block;
}

template <typename Element>
void BlockToOtherBlock(const BlobDesc& from, const Element* src, const BlobDesc& to, Element* dst) {
  ForEachBlockedChannels(to, [&](int64_t n, int64_t first, int64_t channels) {
    Element* out = dst + Offset(to, n, first);
    for (int64_t i = 0; i < to.block; ++i) {
      const Element* in = i < channels ? src + Offset(from, n, first + i) : nullptr;
      for (int64_t p = 0; p < to.plane(); ++p) {
        out[p * to.block + i] = in != nullptr ? in[p * from.block] : Element{};
      }
    }
  });
}

template <typename Element>
void RelayoutElements(const BlobDesc& from, const Element* src, const BlobDesc& to, Element* dst) {
  if (from.block == 1) {
    const auto kernel = RT_KERNEL(InterleaveChannels<Element>);
    ForEachBlockedChannels(to, [&](int64_t n, int64_t first, int64_t channels) {
      kernel(src + Offset(from, n, first), from.plane(), channels, to.block,
             dst + Offset(to, n, first));
    });
  } else if (to.block == 1) {
    const auto kernel = RT_KERNEL(DeinterleaveChannels<Element>);
    ForEachBlockedChannels(from, [&](int64_t n, int64_t first, int64_t channels) {
      kernel(src + Offset(from, n, first), from.plane(), channels, from.block,
             dst + Offset(to, n, first));
    });
  } else {
    BlockToOtherBlock(from, src, to, dst);
  }
}

}  // namespace

bool SameLayout(const BlobDesc& a, const BlobDesc& b) {
  if (!a.SameShape(b)) return false;
  if (a.type != b.type) return false;
  if (a.block == b.block) return true;
  return a.plane() == 1 && a.C % a.block == 0 && b.C % b.block == 0;
}

void CopyBlob(const BlobDesc& desc, const float* src, float* dst) {
  const auto at = [&](auto* blob, int64_t element) { return ElementAt(desc.type, blob, element); };
  ForEachElementRange(desc, [&](int64_t begin, int64_t end) {
    std::memcpy(at(dst, begin), at(src, begin), (end - begin) * BytesPerElement(desc.type));
  });
}

void Relayout(const BlobDesc& from, const float* src, const BlobDesc& to, float* dst) {
  RT_CHECK(from.SameShape(to), from.ShapeString() + " is not " + to.ShapeString());
  RT_CHECK(from.type == to.type, "a change of layout is none of type");
  if (SameLayout(from, to)) return CopyBlob(from, src, dst);
  ForElementOf(from.type, [&](auto element) {
    using Element = decltype(element);
    RelayoutElements(from, ElementsOf<Element>(src), to, ElementsOf<Element>(dst));
  });
}

void ZeroPaddingChannels(const BlobDesc& desc, float* data) {
  const int64_t used = desc.C % desc.block;  // channels of the last block that exist
  if (used == 0) return;
  const int64_t block_elements = desc.plane() * desc.block;
  const int64_t unused_bytes = (desc.block - used) * BytesPerElement(desc.type);
  ParallelFor(desc.N, 1, [&](int64_t begin, int64_t end) {
    for (int64_t n = begin; n < end; ++n) {
      const int64_t last = ((n + 1) * desc.channel_blocks() - 1) * block_elements;
      for (int64_t p = 0; p < block_elements; p += desc.block) {
        std::memset(ElementAt(desc.type, data, last + p + used), 0, unused_bytes);
      }
    }
  });
}

}  // namespace ringtail
