// Configs that must be refused, with the place that the message names.
#ifndef RINGTAIL_TESTS_OPTIM_BAD_CONFIG_H_
#define RINGTAIL_TESTS_OPTIM_BAD_CONFIG_H_

namespace ringtail {

struct BadConfig {
  const char* text;  // of `optim`, as for ValidationMessage; starts at line 2
  const char* place;
  const char* complaint;
};

void ExpectRefused(const BadConfig& config);

}  // namespace ringtail

#endif  // RINGTAIL_TESTS_OPTIM_BAD_CONFIG_H_
