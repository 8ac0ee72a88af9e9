// How pixels are cut into pieces and runs, and where the channel blocks of a run lie.
#include "layers/convolution/pixel_pieces.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "layers/convolution/pixel_view.h"
#include "tests/layers/layer_runner.h"
#include "tests/layers/test_affine.h"
#include "tests/layers/test_gradient.h"

namespace ringtail {
namespace {

using PixelRun = PixelPieces::Run;

bool Same(const PixelRun& a, const PixelRun& b) {
  return a.sample == b.sample && a.first == b.first && a.pixels == b.pixels && a.pieces == b.pieces;
}

struct Cut {
  int64_t samples, plane, run_pixels, group;
};
class PixelPiecesTest : public testing::TestWithParam<Cut> {};

TEST_P(PixelPiecesTest, RunsCoverEveryPixelInOrder) {
  const auto [samples, plane, run_pixels, group] = GetParam();
  const PixelPieces pieces(samples, plane, run_pixels, group);
  for (const int64_t parts : {1, 2, 3, 7}) {
    int64_t pixels = 0;
    for (int64_t part = 0; part < parts; ++part) {
      const int64_t begin = pieces.count() * part / parts;
      const int64_t end = pieces.count() * (part + 1) / parts;
      std::vector<PixelRun> runs, nexts;
      pieces.ForEachRun(begin, end, [&](const PixelRun& run, const PixelRun& next) {
        ASSERT_EQ(run.sample * plane + run.first, pixels);
        pixels += run.pixels * run.pieces;
        runs.push_back(run);
        nexts.push_back(next);
      });
      for (size_t i = 0; i < runs.size(); ++i) {
        EXPECT_TRUE(Same(nexts[i], runs[std::min(i + 1, runs.size() - 1)])) << "run " << i;
      }
    }
    EXPECT_EQ(pixels, samples * plane);
  }
}

TEST_P(PixelPiecesTest, PiecesAreAsTheyAreToBe) {
  const auto [samples, plane, run_pixels, group] = GetParam();
  const PixelPieces pieces(samples, plane, run_pixels, group);
  const int64_t piece = pieces.piece_pixels();
  EXPECT_TRUE(piece == plane || piece % group == 0);
  EXPECT_EQ(pieces.count(), samples * ((plane + piece - 1) / piece));
  EXPECT_LT(pieces.run_pixels(), std::max(run_pixels, group) + group);
  int64_t most = 0;
  pieces.ForEachRun(0, pieces.count(), [&](const PixelRun& run, const PixelRun&) {
    most = std::max(most, run.pixels * run.pieces);
    // All but the last of a plane are of one size, and only whole planes share a run.
    EXPECT_EQ(run.pixels, std::min(piece, plane - run.first));
    EXPECT_TRUE(run.pieces == 1 || run.pixels == plane);
  });
  EXPECT_LE(most, pieces.run_pixels());
}

INSTANTIATE_TEST_SUITE_P(Cuts, PixelPiecesTest,
                         testing::Values(Cut{1, 1, 256, 14}, Cut{5, 1, 256, 14},
                                         Cut{11, 9, 40, 6},      // 4 planes to a run, the last 3
                                         Cut{9, 49, 256, 14},    // 5, then 4
                                         Cut{3, 196, 256, 14},   // one plane is a run
                                         Cut{2, 3136, 256, 14},  // equal cuts
                                         Cut{2, 1517, 256, 14},  // unequal ones
                                         Cut{3, 143, 40, 6}, Cut{2, 143, 40, 1},
                                         Cut{2, 100, 3, 14}));  // less than a group

// A run in samples 1 and 2, channel blocks 1 and 2 of 4, as the views show it.
class PixelViewTest : public testing::Test {
 protected:
  PixelViewTest() : blob_(desc_.bytes()), buffer_(2 * 2 * 6 * lanes_ * sizeof(float)) {
    CopyToLayout(RandomPlain(desc_, 31, -2, 2), desc_, blob_.floats());
  }

  // Everything that the view shows is what `expected` has there.
  void ExpectShows(const PixelView& view, const PixelRun& run, const float* expected) const {
    const int64_t floats = desc_.plane() * lanes_;
    for (int64_t block = 0; block < 2; ++block)
      for (int64_t piece = 0; piece < run.pieces; ++piece)
        for (int64_t i = 0; i < run.pixels * lanes_; ++i) {
          const int64_t plane = (run.sample + piece) * desc_.channel_blocks() + 1 + block;
          ASSERT_EQ(view.data[block * view.block_stride + piece * view.sample_stride + i],
                    expected[plane * floats + run.first * lanes_ + i])
              << "block " << block << " piece " << piece << " float " << i;
        }
    EXPECT_TRUE(buffer_.GuardsIntact());
  }

  const int64_t lanes_ = RT_KERNEL(PointwiseLanes)();
  const BlobDesc desc_{4, 4 * lanes_ - 3, 2, 3, lanes_};
  const PixelRun runs_[2] = {{.sample = 1, .first = 0, .pixels = 6, .pieces = 2},   // whole planes
                             {.sample = 2, .first = 2, .pixels = 3, .pieces = 1}};  // part of one
  GuardedBuffer blob_, buffer_;
};

TEST_F(PixelViewTest, ShowsTheBlob) {
  for (const PixelRun& run : runs_) {
    const PixelBlocks blocks = {desc_, run, 1, 2};
    ExpectShows(View(blocks, blob_.floats()), run, blob_.floats());
    // Without a map nothing is copied.
    const PixelView view = View(blocks, blob_.floats(), ChannelAffine{}, nullptr);
    EXPECT_EQ(view.data, blob_.floats() + blocks.Offset(0, 0));
    ExpectShows(view, run, blob_.floats());
    ExpectShows(View(blocks, blob_.floats(), ChannelGradient{}, nullptr), run, blob_.floats());
  }
}

TEST_F(PixelViewTest, ShowsTheMappedBlob) {
  const TestAffine affine(desc_);
  const GuardedBuffer mapped(desc_.bytes());
  std::copy_n(blob_.floats(), desc_.elements(), mapped.floats());
  affine.Apply(desc_, mapped.floats());
  for (const PixelRun& run : runs_) {
    const PixelBlocks blocks = {desc_, run, 1, 2};
    ExpectShows(View(blocks, blob_.floats(), affine.affine(), buffer_.floats()), run,
                mapped.floats());
  }
}

TEST_F(PixelViewTest, ShowsTheMappedGradient) {
  const TestGradient gradient(desc_);
  const GuardedBuffer mapped(desc_.bytes());
  std::copy_n(blob_.floats(), desc_.elements(), mapped.floats());
  gradient.Apply(mapped.floats());
  for (const PixelRun& run : runs_) {
    const PixelBlocks blocks = {desc_, run, 1, 2};
    ExpectShows(View(blocks, blob_.floats(), gradient.gradient(), buffer_.floats()), run,
                mapped.floats());
  }
}

}  // namespace
}  // namespace ringtail
