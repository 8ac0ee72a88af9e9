// Bodies: one way to draw a sitting and a standing animal, in proportions that the species fills
// in. Coordinates: the head sits at (0, 0) with radius 1; y points down.
#ifndef RINGTAIL_APPS_SYNTHESIZE_BODY_H_
#define RINGTAIL_APPS_SYNTHESIZE_BODY_H_

#include "apps/synthesize/canvas.h"
#include "apps/synthesize/coat.h"
#include "core/random.h"

namespace ringtail {

struct BodyShape {
  double chest;       // half the width of the shoulders
  double hips;        // half the width of the hindquarters
  double leg_length;  // of a standing animal, below the belly
  double leg_width;
  double belly_tuck;  // how far the belly of a standing animal rises towards the hind legs
  Outline tail;       // from its root, (0, 0), to its tip, to the right
  double tail_root_width, tail_tip_width;
};

// Everything but the head, which is drawn over it.
void DrawSittingBody(const Canvas& canvas, const Coat& coat, const BodyShape& shape, Rng* rng);
void DrawStandingBody(const Canvas& canvas, const Coat& coat, const BodyShape& shape, Rng* rng);
void DrawShoulders(const Canvas& canvas, const Coat& coat,
                   const BodyShape& shape);  // of a portrait

}  // namespace ringtail

#endif  // RINGTAIL_APPS_SYNTHESIZE_BODY_H_
