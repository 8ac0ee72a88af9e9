// The two species. Each file (cat.cc, dog.cc) holds what makes one of them: the shape of ears,
// face, muzzle, eyes, tail and body. What they share is in coat.h (colours) and body.h (how a body
// is drawn). Coordinates: the head sits at (0, 0) with radius 1; y points down; the animal looks at
// the viewer.
#ifndef RINGTAIL_APPS_SYNTHESIZE_ANIMAL_H_
#define RINGTAIL_APPS_SYNTHESIZE_ANIMAL_H_

#include "apps/synthesize/body.h"
#include "apps/synthesize/canvas.h"
#include "apps/synthesize/coat.h"
#include "core/random.h"

namespace ringtail {

enum class Species { kCat, kDog };

inline const cv::Scalar kPupil(20, 18, 20), kGleam(250, 250, 250);

void DrawCatHead(const Canvas& canvas, const Coat& coat, Rng* rng);
void DrawDogHead(const Canvas& canvas, const Coat& coat, Rng* rng);
BodyShape CatBody(Rng* rng);
BodyShape DogBody(Rng* rng);

}  // namespace ringtail

#endif  // RINGTAIL_APPS_SYNTHESIZE_ANIMAL_H_
