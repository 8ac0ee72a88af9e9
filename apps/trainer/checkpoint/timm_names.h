// The names that timm gives to the weights of networks whose names here are torchvision's, where
// the two differ: MobileNetV2 (mobilenetv2_100) and VGG. (timm's ResNets have torchvision's names.)
// Thread-safety: functions without state. Sources: timm's models/vgg.py (_filter_fn) and
// models/efficientnet_blocks.py (the layers of its blocks); torchvision's models/mobilenetv2.py and
// models/vgg.py.
#ifndef RINGTAIL_APPS_TRAINER_CHECKPOINT_TIMM_NAMES_H_
#define RINGTAIL_APPS_TRAINER_CHECKPOINT_TIMM_NAMES_H_

#include <string>

namespace ringtail {

// torchvision's name of one of timm's; others come back as they are.
//   blocks.1.0.conv_pw.weight -> features.2.conv.0.0.weight
//   pre_logits.fc1.bias       -> classifier.0.bias
std::string TorchvisionNameOfTimmMobileNet(const std::string& name);
std::string TorchvisionNameOfTimmVgg(const std::string& name);

}  // namespace ringtail

#endif  // RINGTAIL_APPS_TRAINER_CHECKPOINT_TIMM_NAMES_H_
