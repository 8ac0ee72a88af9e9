// A canvas to draw animals on, in their own units: 1 is the radius of a head, y points down. Each
// canvas maps its units to pixels of one shared image; At() gives one whose origin, angle and
// size differ, so that a head is drawn the same way wherever it sits. All outlines are polygons and
// all edges are smoothed. Thread-safety: one image, one thread.
#ifndef RINGTAIL_APPS_SYNTHESIZE_CANVAS_H_
#define RINGTAIL_APPS_SYNTHESIZE_CANVAS_H_

#include <opencv2/core.hpp>
#include <vector>

namespace ringtail {

using Outline = std::vector<cv::Point2d>;

Outline Ellipse(cv::Point2d center, double radius_x, double radius_y, double degrees = 0);
Outline Smooth(const Outline& corners);      // a closed Catmull-Rom curve through the corners
Outline SmoothPath(const Outline& corners);  // an open one
// A smooth band along `corners`, `from` wide at the first and `to` at the last, with round ends.
Outline Ribbon(const Outline& corners, double from, double to);
Outline Mirrored(Outline outline);  // x to -x

class Canvas {
 public:
  // `image`: 8-bit BGR, shared. One unit is `scale` pixels; `flip` mirrors left and right.
  Canvas(const cv::Mat& image, cv::Point2d origin_pixels, double scale, double degrees, bool flip);

  Canvas At(cv::Point2d origin, double scale, double degrees) const;
  double scale() const { return scale_; }  // pixels per unit

  // `opacity`: 0 .. 1.
  void Fill(const Outline& outline, const cv::Scalar& color, double opacity = 1) const;
  // Fills with what `texture` (same size as the image) shows there, darker towards the edge, as
  // if the shape were round, and draws a contour of `contour` around it. An open contour leaves out
  // the line from the last corner to the first: where a leg grows out of the body.
  enum class Contour { kClosed, kOpen };
  void FillFur(const Outline& outline, const cv::Mat& texture, double lightness,
               const cv::Scalar& contour, Contour closing = Contour::kClosed) const;
  void Stroke(const Outline& path, double width, const cv::Scalar& color) const;

 private:
  std::vector<cv::Point> ToPixels(const Outline& outline) const;  // fixed point, kSubpixelBits
  cv::Mat image_;
  cv::Matx23d map_;
  double scale_;
};

}  // namespace ringtail

#endif  // RINGTAIL_APPS_SYNTHESIZE_CANVAS_H_
