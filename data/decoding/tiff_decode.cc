#include "data/decoding/tiff_decode.h"

#include <tiffio.h>

#include <algorithm>
#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <memory>
#include <vector>

#include "data/decoding/tiff_header.h"

namespace ringtail {
namespace {

constexpr uint32_t kWhite = 255;

// What libtiff takes for a file.
struct Memory {
  std::span<const std::byte> bytes;
  uint64_t position = 0;
};

Memory* MemoryOf(thandle_t handle) { return static_cast<Memory*>(handle); }

tmsize_t Read(thandle_t handle, void* buffer, tmsize_t size) {
  Memory* const memory = MemoryOf(handle);
  if (size <= 0 || memory->position >= memory->bytes.size()) return 0;
  const auto count = std::min<uint64_t>(size, memory->bytes.size() - memory->position);
  std::memcpy(buffer, memory->bytes.data() + memory->position, count);
  memory->position += count;
  return static_cast<tmsize_t>(count);
}

tmsize_t WriteNothing(thandle_t /*handle*/, void* /*buffer*/, tmsize_t /*size*/) { return 0; }

toff_t Seek(thandle_t handle, toff_t offset, int whence) {
  Memory* const memory = MemoryOf(handle);
  if (whence == SEEK_CUR) offset += memory->position;
  if (whence == SEEK_END) offset += memory->bytes.size();
  return memory->position = offset;
}

int Close(thandle_t /*handle*/) { return 0; }
toff_t SizeOf(thandle_t handle) { return MemoryOf(handle)->bytes.size(); }

// Says that no other handler has to be called, such as the one that prints.
int Ignore(TIFF* /*tiff*/, void* /*data*/, const char* /*module*/, const char* /*format*/,
           va_list /*arguments*/) {
  return 1;
}

struct CloseTiff {
  void operator()(TIFF* tiff) const { TIFFClose(tiff); }
};
using TiffHandle = std::unique_ptr<TIFF, CloseTiff>;

// The most that one allocation of libtiff may need: the file, or a strip or tile, decoded.
tmsize_t MostBytes(int64_t file, const ImageHeader& header) {
  constexpr int64_t kPixelBytes = 8;  // four channels of 16 bits
  constexpr int64_t kTables = 1 << 20;
  return file + kPixelBytes * MostTilePixels(header.width, header.height) + kTables;
}

// `memory` must outlive it. Null if libtiff refuses it.
TiffHandle Open(Memory* memory, const ImageHeader& header) {
  const std::unique_ptr<TIFFOpenOptions, decltype(&TIFFOpenOptionsFree)> options(
      TIFFOpenOptionsAlloc(), &TIFFOpenOptionsFree);
  TIFFOpenOptionsSetMaxSingleMemAlloc(options.get(), MostBytes(std::ssize(memory->bytes), header));
  TIFFOpenOptionsSetErrorHandlerExtR(options.get(), Ignore, nullptr);
  TIFFOpenOptionsSetWarningHandlerExtR(options.get(), Ignore, nullptr);
  // m: without mapping into memory.
  return TiffHandle(TIFFClientOpenExt("image", "rm", memory, Read, WriteNothing, Seek, Close,
                                      SizeOf, nullptr, nullptr, options.get()));
}

bool ReadPixels(TIFF* tiff, const ImageHeader& header, std::vector<uint32_t>* pixels) {
  constexpr int kStopAtErrors = 1;
  char error[1024] = "";  // libtiff's size
  TIFFRGBAImage image;
  if (TIFFRGBAImageBegin(&image, tiff, kStopAtErrors, error) == 0) return false;
  image.req_orientation = image.orientation;  // as stored
  const auto width = static_cast<uint32_t>(header.width);
  const auto height = static_cast<uint32_t>(header.height);
  bool read = false;
  if (image.width == width && image.height == height) {
    pixels->resize(size_t{width} * height);
    read = TIFFRGBAImageGet(&image, pixels->data(), width, height) != 0;
  }
  TIFFRGBAImageEnd(&image);
  return read;
}

// libtiff has multiplied colours by alpha.
uint8_t OverWhite(uint32_t colour, uint32_t alpha) {
  return static_cast<uint8_t>(std::min(colour + kWhite - alpha, kWhite));
}

}  // namespace

Status DecodeTiff(std::span<const std::byte> bytes, const ImageHeader& header, Image* dst) {
  Memory memory{.bytes = bytes};
  const TiffHandle tiff = Open(&memory, header);
  std::vector<uint32_t> pixels;
  if (tiff == nullptr || !ReadPixels(tiff.get(), header, &pixels)) {
    return DataLoss("cannot be decoded: it is truncated or corrupt");
  }
  dst->Reset(header.width, header.height);
  uint8_t* out = dst->pixels.data();
  for (const uint32_t pixel : pixels) {
    const uint32_t alpha = TIFFGetA(pixel);
    *out++ = OverWhite(TIFFGetR(pixel), alpha);
    *out++ = OverWhite(TIFFGetG(pixel), alpha);
    *out++ = OverWhite(TIFFGetB(pixel), alpha);
  }
  return OkStatus();
}

}  // namespace ringtail
