// A cat: pointed triangular ears, a round face with cheeks, almond eyes with slit pupils, a small
// muzzle with whiskers, a slim body and a long thin tail.
#include "apps/synthesize/animal.h"

namespace ringtail {
namespace {

void DrawPointedEar(const Canvas& canvas, const Coat& coat, double side, double lean,
                    double height) {
  const cv::Point2d tip(side * (0.72 + lean), -0.75 - height);
  const cv::Point2d outer(side * 0.98, -0.2), inner(side * 0.12, -0.78);
  const cv::Point2d bulge(side * 0.03, -0.05);  // the edges are slightly round
  canvas.FillFur({inner, (inner + tip) / 2 + bulge, tip, (outer + tip) / 2 + bulge, outer},
                 coat.fur, 0.95, coat.contour);
  const cv::Point2d middle = (tip + outer + inner) / 3;
  constexpr double kInside = 0.62;  // of the ear
  canvas.Fill({middle + kInside * (inner - middle), middle + kInside * (tip - middle),
               middle + kInside * (outer - middle)},
              coat.inner_ear);
}

void DrawEye(const Canvas& canvas, const Coat& coat, double side, double pupil, double look) {
  const double x = side * 0.4, y = -0.08;
  const Outline almond = Smooth({{x - 0.25, y + side * 0.05},
                                 {x - 0.1, y - 0.17},
                                 {x + 0.1, y - 0.17},
                                 {x + 0.25, y - side * 0.05},
                                 {x + 0.08, y + 0.15},
                                 {x - 0.08, y + 0.15}});
  canvas.Fill(almond, coat.iris);
  canvas.Fill(Ellipse({x + look, y}, pupil, 0.16), kPupil);
  canvas.Fill(Ellipse({x + look - 0.05, y - 0.08}, 0.04, 0.04), kGleam);
  Outline rim = almond;
  rim.push_back(almond.front());
  canvas.Stroke(rim, 0.05, coat.contour);
}

void DrawMuzzle(const Canvas& canvas, const Coat& coat) {
  for (const double side : {-1.0, 1.0}) {
    canvas.FillFur(Ellipse({side * 0.19, 0.44}, 0.25, 0.2), coat.pale, 1.1, coat.contour);
  }
  canvas.Fill(Smooth({{-0.13, 0.22}, {0, 0.2}, {0.13, 0.22}, {0, 0.36}}), coat.nose);
  canvas.Stroke({{0, 0.34}, {0, 0.47}}, 0.04, coat.contour);
  for (const double side : {-1.0, 1.0}) {
    canvas.Stroke(SmoothPath({{0, 0.47}, {side * 0.12, 0.57}, {side * 0.27, 0.5}}), 0.04,
                  coat.contour);
  }
}

void DrawWhiskers(const Canvas& canvas, const Coat& coat, double droop, double length) {
  for (const double side : {-1.0, 1.0}) {
    for (const double row : {-1.0, 0.0, 1.0}) {
      const double y = 0.42 + 0.07 * row;
      canvas.Stroke(SmoothPath({{side * 0.3, y},
                                {side * (0.3 + 0.5 * length), y + 0.08 * row},
                                {side * (0.3 + length), y + 0.2 * row + droop}}),
                    0.025, row == 0 ? cv::Scalar(240, 240, 240) : coat.contour);
    }
  }
}

}  // namespace

void DrawCatHead(const Canvas& canvas, const Coat& coat, Rng* rng) {
  const double lean = rng->Uniform(-0.12F, 0.2F), height = rng->Uniform(0.45F, 0.8F);
  const double wide = rng->Uniform(0.95F, 1.1F), look = rng->Uniform(-0.06F, 0.06F);
  const double pupil = rng->Uniform(0.045F, 0.11F);
  const double droop = rng->Uniform(-0.1F, 0.15F), whiskers = rng->Uniform(0.7F, 1.0F);
  for (const double side : {-1.0, 1.0}) DrawPointedEar(canvas, coat, side, lean, height);
  canvas.FillFur(Smooth({{0, -0.86},
                         {0.6 * wide, -0.7},
                         {0.95 * wide, -0.15},
                         {1.0 * wide, 0.3},
                         {0.55 * wide, 0.75},
                         {0, 0.86},
                         {-0.55 * wide, 0.75},
                         {-1.0 * wide, 0.3},
                         {-0.95 * wide, -0.15},
                         {-0.6 * wide, -0.7}}),
                 coat.fur, 1, coat.contour);
  for (const double side : {-1.0, 1.0}) DrawEye(canvas, coat, side, pupil, look);
  DrawMuzzle(canvas, coat);
  DrawWhiskers(canvas, coat, droop, whiskers);
}

BodyShape CatBody(Rng* rng) {
  const double reach = rng->Uniform(0.8F, 1.2F), curl = rng->Uniform(-0.3F, 0.4F);
  return {.chest = rng->Uniform(0.62F, 0.76F),
          .hips = rng->Uniform(0.8F, 0.95F),
          .leg_length = rng->Uniform(0.6F, 0.85F),
          .leg_width = rng->Uniform(0.3F, 0.36F),
          .belly_tuck = 0.05,
          .tail = {{0, 0},
                   {0.55 * reach, 0.1},
                   {0.95 * reach, -0.6},
                   {0.8 * reach, -1.3},
                   {(1.0 + curl) * reach, -1.9}},
          .tail_root_width = 0.3,
          .tail_tip_width = 0.22};
}

}  // namespace ringtail
