#include "tests/optim/bad_config.h"

#include <gtest/gtest.h>

#include <string>

#include "tests/optim/test_arena.h"

namespace ringtail {

void ExpectRefused(const BadConfig& config) {
  const std::string message = ValidationMessage(config.text);
  for (const std::string& part :
       {std::string("run.textproto:") + config.place, std::string(config.complaint)}) {
    EXPECT_NE(message.find(part), std::string::npos) << message << " lacks " << part;
  }
}

}  // namespace ringtail
