// Configs of tests, as text. A text that is not one ends the test process.
#ifndef RINGTAIL_TESTS_TESTING_PARSE_CONFIG_H_
#define RINGTAIL_TESTS_TESTING_PARSE_CONFIG_H_

#include <string>

#include "core/check.h"
#include "core/config/text_config.h"

namespace ringtail {

template <typename Config>
Config ParseConfig(const std::string& text) {
  Config config;
  const Status parsed = ParseTextConfig(text, "test.textproto", &config, nullptr);
  RT_CHECK(parsed.ok(), parsed.message());
  return config;
}

}  // namespace ringtail

#endif  // RINGTAIL_TESTS_TESTING_PARSE_CONFIG_H_
