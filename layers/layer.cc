#include "layers/layer.h"

namespace ringtail {

bool Layer::FuseActivation(Activation) { return false; }

}  // namespace ringtail
