#include "apps/emulator/script.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ringtail {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

std::string ErrorOf(const std::string& text, const std::vector<std::string>& overrides = {}) {
  return ParseScript(text, "a.script", overrides).status().message();
}

TEST(ScriptTest, DefaultsAreAWorldOnGigabitEthernet) {
  const EmulationScript script = ReadScript("", {}).value();
  EXPECT_EQ(script.workers(), 4);
  const NetworkModel network = NetworkOf(script);
  EXPECT_DOUBLE_EQ(network.between_hosts.seconds_per_byte, 8e-9);
  EXPECT_DOUBLE_EQ(network.between_hosts.latency_s, 50e-6);
  EXPECT_DOUBLE_EQ(network.within_host.seconds_per_byte, 0.125e-9);
  EXPECT_DOUBLE_EQ(network.within_host.latency_s, 2e-6);
}

TEST(ScriptTest, ReadsEventsAndOverrides) {
  const std::vector<std::string> overrides = {"compute.jitter=0.5", "compute.fixed_ms=1",
                                              "workers=6"};
  const EmulationScript script =
      ParseScript("workers: 2 slow { worker: 1 factor: 5 from_s: 1 to_s: 3 } join { at_s: 4 }",
                  "a.script", overrides)
          .value();
  EXPECT_EQ(script.workers(), 6);
  EXPECT_EQ(script.compute().jitter(), 0.5);
  EXPECT_NE(SpeedOf(script).Jitter(1, 0), 1);
  EXPECT_EQ(script.slow(0).factor(), 5);
}

TEST(ScriptTest, ErrorsNameThePlaceAndTheField) {
  EXPECT_THAT(ErrorOf("workers: 0"), HasSubstr("a.script:1:1: workers is 0"));
  EXPECT_THAT(ErrorOf("workers: 2\nworkers_per_host: 2000"), HasSubstr("a.script:2:1"));
  EXPECT_THAT(ErrorOf("wrokers: 2"), HasSubstr("did you mean 'workers'?"));
  EXPECT_THAT(ErrorOf("between_hosts { mbit_per_s: 0 }"), HasSubstr("mbit_per_s is 0"));
  EXPECT_THAT(ErrorOf("between_hosts { latency_us: -1 }"), HasSubstr("latency_us is -1"));
  EXPECT_THAT(ErrorOf("within_host { add_gb_per_s: 0 }"), HasSubstr("add_gb_per_s is 0"));
  EXPECT_THAT(ErrorOf("within_host { cpu_ns_per_byte: 5 }"), HasSubstr("between hosts only"));
  EXPECT_THAT(ErrorOf("within_host { cpu_us_per_message: 5 }"), HasSubstr("between hosts only"));
  EXPECT_EQ(ErrorOf("between_hosts { cpu_ns_per_byte: 5 cpu_us_per_message: 5 }"), "");
  EXPECT_THAT(ErrorOf("compute { jitter: 3 }"), HasSubstr("jitter is 3"));
  EXPECT_THAT(ErrorOf("compute { ms_per_image: nan }"), HasSubstr("ms_per_image is nan"));
}

// Of what --script-set has set, whether it is the text or the number that is wrong.
TEST(ScriptTest, ErrorsNameTheFlag) {
  EXPECT_THAT(ErrorOf("", {"workers=x"}), StartsWith("--script-set workers=x: "));
  EXPECT_THAT(ErrorOf("", {"workers=\xFF"}), StartsWith("--script-set: "));
  EXPECT_THAT(ErrorOf("", {"workers=2 seed: 1"}), HasSubstr("one --script-set for each field"));
  EXPECT_THAT(ErrorOf("", {"compute.fixed_ms=nan"}),
              StartsWith("--script-set compute.fixed_ms=nan: fixed_ms is nan"));
}

TEST(ScriptTest, AnythingOfComputeSaysWhatAStepTakes) {
  EXPECT_THAT(ErrorOf("", {"compute.jitter=0.1"}), HasSubstr("how long a step takes"));
  EXPECT_THAT(ErrorOf("compute { encode_ms: 3 cores: 2 }"), HasSubstr("how long a step takes"));
  EXPECT_EQ(ErrorOf("", {"compute.jitter=0.1", "compute.update_ms=0"}), "");
  EXPECT_EQ(ErrorOf("compute {}"), "") << "no time at all";
}

TEST(ScriptTest, EventsMustFitTheWorkers) {
  EXPECT_THAT(ErrorOf("slow { factor: 2 }"), HasSubstr("name the worker"));
  EXPECT_THAT(ErrorOf("workers: 2 slow { worker: 2 }"), HasSubstr("worker is 2"));
  EXPECT_EQ(ErrorOf("workers: 2 join { at_s: 1 } slow { worker: 2 }"), "");
  EXPECT_THAT(ErrorOf("slow { worker: 1 factor: 0 }"), HasSubstr("factor is 0"));
  EXPECT_THAT(ErrorOf("slow { worker: 1 from_s: 3 to_s: 3 }"), HasSubstr("must be above from_s"));
  EXPECT_THAT(ErrorOf("kill { worker: 1 }"), HasSubstr("say when"));
  EXPECT_THAT(ErrorOf("kill { worker: 7 at_s: 1 }"), HasSubstr("worker is 7"));
  EXPECT_THAT(ErrorOf("kill { worker: 1 at_s: -1 }"), HasSubstr("at_s is -1"));
  EXPECT_THAT(ErrorOf("kill { worker: 1 at_s: 1 } kill { worker: 1 at_s: 2 }"),
              HasSubstr("dies twice"));
  EXPECT_THAT(ErrorOf("join {}"), HasSubstr("say when"));
  EXPECT_THAT(ErrorOf("kill { worker: 4 at_s: 1 } join {}"), HasSubstr("say when"));
  EXPECT_THAT(ErrorOf("workers: 4 join { at_s: 45 } kill { worker: 4 at_s: 10 }"),
              HasSubstr("worker 4 dies at 10 s, but joins at 45 s"));
  EXPECT_EQ(ErrorOf("workers: 4 join { at_s: 45 } kill { worker: 4 at_s: 46 }"), "");
}

}  // namespace
}  // namespace ringtail
