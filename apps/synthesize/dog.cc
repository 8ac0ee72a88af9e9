// A dog: floppy ears that hang like drops, a long face with a broad muzzle, round eyes, a large
// oval nose, often the tongue out, a deep chest, longer legs and a short tapering tail.
#include "apps/synthesize/animal.h"

namespace ringtail {
namespace {

const cv::Scalar kEyeWhite(232, 236, 238);
constexpr float kTongueChance = 0.4F;

void DrawHangingEar(const Canvas& canvas, const Coat& coat, double side, double spread,
                    double length) {
  const double top = -0.72, bottom = top + length;
  canvas.FillFur(Smooth({{side * 0.5, top},
                         {side * (0.8 + 0.5 * spread), top + 0.12},
                         {side * (0.98 + spread), (top + bottom) / 2},
                         {side * (0.98 + spread), bottom - 0.12},
                         {side * (0.82 + spread), bottom},
                         {side * (0.66 + 0.8 * spread), bottom - 0.22},
                         {side * 0.66, top + 0.45}}),
                 coat.fur, 0.72, coat.contour);
}

void DrawEye(const Canvas& canvas, const Coat& coat, double side, double look) {
  const cv::Point2d eye(side * 0.34, -0.2), gaze = eye + cv::Point2d(look, 0.02);
  canvas.Fill(Ellipse(eye, 0.17, 0.18), coat.contour);
  canvas.Fill(Ellipse(eye, 0.14, 0.15), kEyeWhite);
  canvas.Fill(Ellipse(gaze, 0.11, 0.12), coat.iris);
  canvas.Fill(Ellipse(gaze, 0.075, 0.08), kPupil);
  canvas.Fill(Ellipse(gaze + cv::Point2d(-0.04, -0.05), 0.035, 0.035), kGleam);
  canvas.Stroke(SmoothPath({{eye.x - 0.16, eye.y - 0.27 + side * 0.03},
                            {eye.x, eye.y - 0.33},
                            {eye.x + 0.16, eye.y - 0.27 - side * 0.03}}),
                0.06, coat.contour);
}

void DrawMuzzle(const Canvas& canvas, const Coat& coat, double width, bool tongue) {
  if (tongue) {
    canvas.FillFur(Smooth({{-0.15, 0.7}, {0.15, 0.7}, {0.17, 1.05}, {0, 1.2}, {-0.17, 1.05}}),
                   cv::Mat(coat.fur.size(), CV_8UC3, coat.mouth), 1, coat.contour);
  }
  canvas.FillFur(Smooth({{0, 0.0},
                         {0.75 * width, 0.15},
                         {width, 0.52},
                         {0.7 * width, 0.84},
                         {0, 0.82},
                         {-0.7 * width, 0.84},
                         {-width, 0.52},
                         {-0.75 * width, 0.15}}),
                 coat.pale, 1.08, coat.contour);
  canvas.Fill(Ellipse({0, 0.22}, 0.23, 0.16), coat.nose);
  canvas.Fill(Ellipse({-0.07, 0.16}, 0.06, 0.035), kGleam, 0.7);
  canvas.Stroke({{0, 0.36}, {0, 0.6}}, 0.05, coat.contour);
  for (const double side : {-1.0, 1.0}) {
    canvas.Stroke(SmoothPath({{0, 0.6}, {side * 0.2, 0.7}, {side * 0.38, 0.6}}), 0.05,
                  coat.contour);
  }
}

}  // namespace

void DrawDogHead(const Canvas& canvas, const Coat& coat, Rng* rng) {
  const double spread = rng->Uniform(0, 0.25F), length = rng->Uniform(0.95F, 1.6F);
  const double wide = rng->Uniform(0.9F, 1.05F), look = rng->Uniform(-0.04F, 0.04F);
  const double muzzle = rng->Uniform(0.46F, 0.58F);
  const bool tongue = rng->Uniform() < kTongueChance;
  canvas.FillFur(Smooth({{0, -0.9},
                         {0.52 * wide, -0.8},
                         {0.8 * wide, -0.35},
                         {0.76 * wide, 0.1},
                         {0.58 * wide, 0.65},
                         {0, 0.92},
                         {-0.58 * wide, 0.65},
                         {-0.76 * wide, 0.1},
                         {-0.8 * wide, -0.35},
                         {-0.52 * wide, -0.8}}),
                 coat.fur, 1, coat.contour);
  for (const double side : {-1.0, 1.0}) DrawEye(canvas, coat, side, look);
  DrawMuzzle(canvas, coat, muzzle, tongue);
  for (const double side : {-1.0, 1.0}) DrawHangingEar(canvas, coat, side, spread, length);
}

BodyShape DogBody(Rng* rng) {
  const double reach = rng->Uniform(0.8F, 1.15F);
  return {.chest = rng->Uniform(0.8F, 0.98F),
          .hips = rng->Uniform(0.78F, 0.92F),
          .leg_length = rng->Uniform(0.95F, 1.35F),
          .leg_width = rng->Uniform(0.36F, 0.44F),
          .belly_tuck = rng->Uniform(0.25F, 0.4F),
          .tail = {{0, 0}, {0.4 * reach, -0.2}, {0.75 * reach, -0.65}, {0.85 * reach, -1.1}},
          .tail_root_width = 0.34,
          .tail_tip_width = 0.1};
}

}  // namespace ringtail
