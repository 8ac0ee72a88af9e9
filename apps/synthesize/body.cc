#include "apps/synthesize/body.h"

namespace ringtail {
namespace {

constexpr double kShade = 0.82;  // the light on what lies behind
constexpr double kLit = 1.08;    // ... on what lies in front

void DrawTail(const Canvas& canvas, const Coat& coat, const BodyShape& shape) {
  canvas.FillFur(Ribbon(shape.tail, shape.tail_root_width, shape.tail_tip_width), coat.fur, kShade,
                 coat.contour);
}

void DrawPaw(const Canvas& canvas, const Coat& coat, cv::Point2d at, double width) {
  canvas.FillFur(Ellipse(at, 0.8 * width, 0.5 * width), coat.pale, 1, coat.contour);
  for (const double toe : {-0.25, 0.25}) {
    const cv::Point2d top(at.x + toe * width, at.y + 0.05 * width);
    canvas.Stroke({top, {top.x, top.y + 0.35 * width}}, 0.03, coat.contour);
  }
}

void DrawLeg(const Canvas& canvas, const Coat& coat, cv::Point2d top, cv::Point2d foot,
             double width, double light) {
  const cv::Point2d knee((top.x + foot.x) / 2 + 0.05, (top.y + foot.y) / 2);
  canvas.FillFur(Ribbon({top, knee, foot}, 1.25 * width, width), coat.fur, light, coat.contour,
                 Canvas::Contour::kOpen);
  DrawPaw(canvas, coat, {foot.x - 0.1 * width, foot.y + 0.1 * width}, width);
}

void DrawCollar(const Canvas& canvas, const Coat& coat, double half_width) {
  if (!coat.has_collar) return;
  canvas.Fill(Ribbon({{-half_width, 0.72}, {0, 1.02}, {half_width, 0.72}}, 0.2, 0.2), coat.collar);
  canvas.Fill(Ellipse({0, 1.18}, 0.12, 0.13), coat.collar * 0.7);
}

}  // namespace

void DrawShoulders(const Canvas& canvas, const Coat& coat, const BodyShape& shape) {
  const double w = shape.chest;
  canvas.FillFur(Smooth({{-0.55, 0.4},
                         {0.55, 0.4},
                         {1.2 * w, 1.3},
                         {1.5 * w, 2.6},
                         {1.5 * w, 5},
                         {-1.5 * w, 5},
                         {-1.5 * w, 2.6},
                         {-1.2 * w, 1.3}}),
                 coat.fur, kShade, coat.contour);
  canvas.FillFur(Ellipse({0, 2.2}, 0.6 * w, 1.2), coat.pale, 1, coat.contour);
  DrawCollar(canvas, coat, 0.6);
}

void DrawSittingBody(const Canvas& canvas, const Coat& coat, const BodyShape& shape, Rng* rng) {
  const double bottom = 2.7 + 0.25 * shape.leg_length;
  const double w = shape.chest, h = shape.hips;
  DrawTail(canvas.At({0.7 * h, bottom - 0.35}, 1, rng->Uniform(-15, 15)), coat, shape);
  for (const double side : {-1.0, 1.0}) {  // hind legs, folded
    canvas.FillFur(Ellipse({side * h, bottom - 0.55}, 0.5, 0.62, side * 20), coat.fur, kShade,
                   coat.contour);
    DrawPaw(canvas, coat, {side * (h + 0.15), bottom + 0.05}, 0.42);
  }
  canvas.FillFur(Smooth({{-0.5, 0.4},
                         {0.5, 0.4},
                         {w, 1.2},
                         {h, bottom - 0.6},
                         {0.6 * h, bottom},
                         {-0.6 * h, bottom},
                         {-h, bottom - 0.6},
                         {-w, 1.2}}),
                 coat.fur, 1, coat.contour);
  canvas.FillFur(Ellipse({0, 1.45}, 0.6 * w, 0.65), coat.pale, kLit, coat.contour);
  for (const double side : {-1.0, 1.0}) {
    const double x = side * 0.42 * w;
    DrawLeg(canvas, coat, {1.1 * x, 1.6}, {x, bottom}, shape.leg_width, kLit);
  }
  DrawCollar(canvas, coat, 0.55);
}

void DrawStandingBody(const Canvas& canvas, const Coat& coat, const BodyShape& shape, Rng* rng) {
  const double length = rng->Uniform(2.3F, 2.8F), back = 0.45, belly = back + 1.5 * shape.chest;
  const double ground = belly + shape.leg_length, stride = rng->Uniform(-0.3F, 0.3F);
  const double fore = 0.45, hind = length - 0.15;
  DrawTail(canvas.At({length, back + 0.35}, 1, rng->Uniform(-15, 15)), coat, shape);
  for (const double x : {fore + 0.3, hind - 0.3}) {  // the legs of the far side
    DrawLeg(canvas, coat, {x, belly - 0.4}, {x - stride, ground - 0.12}, shape.leg_width, kShade);
  }
  const double tuck = shape.belly_tuck;
  canvas.FillFur(Smooth({{-0.1, back},
                         {0.5 * length, back + 0.12},
                         {length - 0.2, back},
                         {length + 0.3, back + 0.5},
                         {length + 0.1, belly - tuck},
                         {0.6 * length, belly - tuck},
                         {0.7, belly},
                         {0, belly - 0.2},
                         {-0.35, back + 0.6}}),
                 coat.fur, 1, coat.contour);
  canvas.FillFur(Ellipse({hind - 0.05, belly - 0.5}, 0.45, 0.6), coat.fur, kLit, coat.contour);
  for (const double x : {fore, hind}) {
    DrawLeg(canvas, coat, {x, belly - 0.35}, {x + stride, ground}, shape.leg_width, kLit);
  }
  DrawCollar(canvas, coat, 0.55);
}

}  // namespace ringtail
