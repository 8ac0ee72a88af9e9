#include "data/decoding/jpeg_decode.h"

#include <fmt/format.h>
#include <setjmp.h>

#include <algorithm>
#include <cstdio>  // jpeglib.h needs it before itself
#include <cstring>
#include <string>
#include <vector>

#include <jpeglib.h>  // NOLINT: must follow <cstdio>

#include <jerror.h>  // NOLINT: must follow jpeglib.h

namespace ringtail {
namespace {

// Smooth upsampling of the chroma planes uses the neighbours of a pixel, so the columns at the
// border of a decoded strip differ from those inside. A margin of this many columns makes a region
// exact.
constexpr int32_t kMarginColumns = 8;
// A progressive image may have any number of scans, of a few bytes each, and every scan costs a
// pass over the whole image (about a millisecond per megapixel). Encoders write about ten: an image
// of any size may have twice as many, a small one more, up to about a second of work in total.
constexpr int kScansOfAnySize = 20, kMaxScans = 100;
constexpr int64_t kMaxScannedPixels = 1'280'000'000;  // over all scans
constexpr int kInkComponents = 4;
constexpr int64_t kBlockSide = 8;  // pixels of a transform

// libjpeg calls back with pointers to its own members; ours follow them.
struct ErrorManager {
  jpeg_error_mgr base;  // first: libjpeg's pointer to it is a pointer to this
  jmp_buf on_error;
  char message[JMSG_LENGTH_MAX];
  bool truncated;         // the data (or an end marker) ended before the pixels
  int64_t complete_rows;  // at full size, if truncated
};

ErrorManager* Errors(j_common_ptr jpeg) { return reinterpret_cast<ErrorManager*>(jpeg->err); }

[[noreturn]] void OnError(j_common_ptr jpeg) {
  jpeg->err->format_message(jpeg, Errors(jpeg)->message);
  longjmp(Errors(jpeg)->on_error, 1);  // NOLINT(bugprone-*): libjpeg's only way out
}

// Level -1 is a warning about the data. All but one are harmless: junk between segments, a wrong
// code that scrambles a few blocks. The exception: the decoder met a marker and continues with
// grey. After a restart marker it will recover; any other marker ends the image here.
void OnMessage(j_common_ptr jpeg, int level) {
  if (level >= 0 || jpeg->err->msg_code != JWRN_HIT_MARKER || !jpeg->is_decompressor) return;
  const auto* decoder = reinterpret_cast<j_decompress_ptr>(jpeg);
  const int marker = decoder->unread_marker;
  if (marker >= JPEG_RST0 && marker < JPEG_RST0 + 8) return;
  ErrorManager* errors = Errors(jpeg);
  if (errors->truncated) return;
  errors->truncated = true;
  errors->complete_rows =
      int64_t{decoder->input_iMCU_row} * decoder->max_v_samp_factor * kBlockSide;
}

int AllowedScans(const jpeg_decompress_struct& jpeg) {
  const int64_t pixels = std::max<int64_t>(int64_t{jpeg.image_width} * jpeg.image_height, 1);
  return static_cast<int>(
      std::clamp<int64_t>(kMaxScannedPixels / pixels, kScansOfAnySize, kMaxScans));
}

void OnProgress(j_common_ptr jpeg) {
  const auto* decoder = reinterpret_cast<j_decompress_ptr>(jpeg);
  const int allowed = AllowedScans(*decoder);
  if (decoder->input_scan_number <= allowed) return;
  std::snprintf(Errors(jpeg)->message, JMSG_LENGTH_MAX,
                "it has more than %d scans, of %u x %u pixels each", allowed, decoder->image_width,
                decoder->image_height);
  longjmp(Errors(jpeg)->on_error, 1);  // NOLINT(bugprone-*)
}

// Adobe's programs store ink inverted (255: none), which their marker tells; no other programs
// write CMYK.
void InkToRgb(const uint8_t* ink, int32_t width, bool inverted, uint8_t* rgb) {
  for (int32_t x = 0; x < width; ++x, ink += kInkComponents, rgb += kChannels) {
    for (int c = 0; c < kChannels; ++c) {
      const int light = inverted ? ink[c] : 255 - ink[c], key = inverted ? ink[3] : 255 - ink[3];
      rgb[c] = static_cast<uint8_t>((light * key + 127) / 255);
    }
  }
}

// All state that lives across a longjmp: constructed before setjmp, destroyed after it.
struct Decoder {
  jpeg_decompress_struct jpeg = {};
  ErrorManager errors = {};
  jpeg_progress_mgr progress = {};
  std::vector<uint8_t> row;  // one decoded strip of the region's rows, with margins
  bool header_differs = false;

  Decoder() {
    jpeg.err = jpeg_std_error(&errors.base);
    errors.base.error_exit = OnError;
    errors.base.emit_message = OnMessage;
    progress.progress_monitor = OnProgress;
  }
  ~Decoder() { jpeg_destroy_decompress(&jpeg); }  // also correct if it was never created
  Decoder(const Decoder&) = delete;
  Decoder& operator=(const Decoder&) = delete;
};

void ReadRow(Decoder* decoder) {
  JSAMPROW row = decoder->row.data();
  jpeg_read_scanlines(&decoder->jpeg, &row, 1);
}

void Start(std::span<const std::byte> bytes, const ImageHeader& header, const Region& region,
           Decoder* decoder) {
  jpeg_decompress_struct& jpeg = decoder->jpeg;
  jpeg_create_decompress(&jpeg);
  jpeg.progress = &decoder->progress;
  jpeg_mem_src(&jpeg, reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size());
  jpeg_read_header(&jpeg, TRUE);
  decoder->header_differs = static_cast<int32_t>(jpeg.image_width) != header.width ||
                            static_cast<int32_t>(jpeg.image_height) != header.height;
  if (decoder->header_differs) return;
  jpeg.out_color_space = header.components == kInkComponents ? JCS_CMYK : JCS_RGB;
  jpeg.scale_num = 1;
  jpeg.scale_denom = region.denominator;
  jpeg.dct_method = JDCT_ISLOW;
  jpeg_start_decompress(&jpeg);
}

void ReadRegion(const ImageHeader& header, const Region& region, Decoder* decoder, Image* dst) {
  jpeg_decompress_struct& jpeg = decoder->jpeg;
  const int32_t output_width = static_cast<int32_t>(jpeg.output_width);
  const int32_t left = std::max(region.x - kMarginColumns, 0);
  const int32_t right = std::min(region.x + region.width + kMarginColumns, output_width);
  JDIMENSION first = left, columns = right - left;
  if (right - left < output_width) jpeg_crop_scanline(&jpeg, &first, &columns);
  decoder->row.resize(static_cast<size_t>(jpeg.output_width) * jpeg.output_components);
  const uint8_t* src =
      decoder->row.data() + static_cast<size_t>(region.x - first) * jpeg.output_components;
  if (region.y > 0) jpeg_skip_scanlines(&jpeg, region.y);
  for (int32_t y = 0; y < region.height; ++y) {
    ReadRow(decoder);
    if (jpeg.out_color_space == JCS_CMYK) {
      InkToRgb(src, region.width, jpeg.saw_Adobe_marker, dst->Row(y));
    } else {
      std::memcpy(dst->Row(y), src, static_cast<size_t>(region.width) * kChannels);
    }
  }
  // Without an end marker, missing data shows only at the end.
  while (!header.complete && jpeg.output_scanline < jpeg.output_height) ReadRow(decoder);
}

// False if libjpeg failed. This frame alone holds the jump's target, and nothing with a destructor.
bool Decode(std::span<const std::byte> bytes, const ImageHeader& header, const Region& region,
            Decoder* decoder, Image* dst) {
  if (setjmp(decoder->errors.on_error) != 0) return false;  // NOLINT(bugprone-*)
  Start(bytes, header, region, decoder);
  if (!decoder->header_differs) ReadRegion(header, region, decoder, dst);
  return true;
}

}  // namespace

Status DecodeJpegRegion(std::span<const std::byte> bytes, const ImageHeader& header,
                        const Region& region, Image* dst) {
  dst->Reset(region.width, region.height);
  Decoder decoder;
  if (!Decode(bytes, header, region, &decoder, dst)) {
    return DataLoss(fmt::format("cannot be decoded: {}", decoder.errors.message));
  }
  if (decoder.header_differs) return DataLoss("cannot be decoded: it has two different headers");
  if (decoder.errors.truncated && jpeg_has_multiple_scans(&decoder.jpeg)) {
    return DataLoss("is truncated: a scan of the progressive image is incomplete");
  }
  if (decoder.errors.truncated) {
    return DataLoss(fmt::format("is truncated after {} of {} rows",
                                std::min<int64_t>(decoder.errors.complete_rows, header.height),
                                header.height));
  }
  return OkStatus();
}

}  // namespace ringtail
