#include "apps/emulator/script.h"

#include <fmt/core.h>

#include <set>
#include <utility>
#include <vector>

#include "apps/emulator/clock/event_queue.h"
#include "core/config/config_override.h"
#include "core/config/field_check.h"
#include "core/config/text_config.h"
#include "core/units.h"

namespace ringtail {
namespace {

constexpr int kMostWorkers = 1024;
constexpr double kMostSeconds = 1e9, kMostMs = 1e9;

Status CheckLink(const LinkScript& link, const FieldCheck& check) {
  RT_RETURN_IF_ERROR(check.PositiveUpTo("mbit_per_s", link.mbit_per_s(), 1e9));
  RT_RETURN_IF_ERROR(check.Between("latency_us", link.latency_us(), 0, 1e9));
  RT_RETURN_IF_ERROR(check.Between("cpu_ns_per_byte", link.cpu_ns_per_byte(), 0, 1e9));
  RT_RETURN_IF_ERROR(check.Between("cpu_us_per_message", link.cpu_us_per_message(), 0, 1e9));
  return check.PositiveUpTo("add_gb_per_s", link.add_gb_per_s(), 1e9);
}

// What sending costs the processor is known of messages between hosts alone.
Status CheckLinkWithin(const LinkScript& link, const FieldCheck& check) {
  RT_RETURN_IF_ERROR(CheckLink(link, check));
  const bool by_byte = link.cpu_ns_per_byte() > 0;
  if (!by_byte && link.cpu_us_per_message() == 0) return OkStatus();
  return check.Error(by_byte ? "cpu_ns_per_byte" : "cpu_us_per_message",
                     "what sending costs the processor is emulated between hosts only: leave it "
                     "out here, or set it in between_hosts");
}

Status CheckCompute(const ComputeScript& compute, const FieldCheck& check) {
  RT_RETURN_IF_ERROR(check.Between("fixed_ms", compute.fixed_ms(), 0, kMostMs));
  RT_RETURN_IF_ERROR(check.Between("ms_per_image", compute.ms_per_image(), 0, kMostMs));
  RT_RETURN_IF_ERROR(check.Between("update_ms", compute.update_ms(), 0, kMostMs));
  RT_RETURN_IF_ERROR(check.Between("prepare_ms", compute.prepare_ms(), 0, compute.update_ms()));
  RT_RETURN_IF_ERROR(check.Between("round_ms", compute.round_ms(), 0, kMostMs));
  RT_RETURN_IF_ERROR(check.Between("encode_ms", compute.encode_ms(), 0, kMostMs));
  RT_RETURN_IF_ERROR(check.Between("decode_ms", compute.decode_ms(), 0, kMostMs));
  RT_RETURN_IF_ERROR(check.Between("wake_delay_ms", compute.wake_delay_ms(), 0, kMostMs));
  RT_RETURN_IF_ERROR(check.Between("cores", compute.cores(), 0.001, 65536));
  RT_RETURN_IF_ERROR(check.Between("jitter", compute.jitter(), 0, 2));
  // Nothing is measured if anything is said; `compute {}` says that steps take no time.
  if (compute.ByteSizeLong() == 0 || compute.has_fixed_ms() || compute.has_ms_per_image() ||
      compute.has_update_ms()) {
    return OkStatus();
  }
  return check.Error("",
                     "compute does not say how long a step takes: add fixed_ms, ms_per_image or "
                     "update_ms (emulate --measure prints all that it measures here), or leave "
                     "compute out");
}

// That `worker` is one of the script's.
template <typename Event>
Status CheckWorker(const EmulationScript& script, const Event& event, const FieldCheck& check) {
  if (!event.has_worker()) return check.Error("", "name the worker: worker: 0");
  return check.Between("worker", event.worker(), 0, script.workers() + script.join_size() - 1);
}

template <typename Event>
Status CheckTime(const Event& event, const FieldCheck& check) {
  if (!event.has_at_s()) return check.Error("", "say when, in virtual seconds: at_s: 10");
  return check.Between("at_s", event.at_s(), 0, kMostSeconds);
}

Status CheckSlow(const EmulationScript& script, const SlowScript& slow, const FieldCheck& check) {
  RT_RETURN_IF_ERROR(CheckWorker(script, slow, check));
  RT_RETURN_IF_ERROR(check.Between("factor", slow.factor(), 1e-3, 1e3));
  RT_RETURN_IF_ERROR(check.Between("from_s", slow.from_s(), 0, kMostSeconds));
  RT_RETURN_IF_ERROR(check.PositiveUpTo("to_s", slow.to_s(), kMostSeconds));
  if (slow.to_s() > slow.from_s()) return OkStatus();
  return check.Error(
      "to_s", fmt::format("to_s is {}; it must be above from_s, {}", slow.to_s(), slow.from_s()));
}

// The joins have been checked.
Status CheckKill(const EmulationScript& script, const KillScript& kill, const FieldCheck& check) {
  RT_RETURN_IF_ERROR(CheckWorker(script, kill, check));
  RT_RETURN_IF_ERROR(CheckTime(kill, check));
  RT_RETURN_IF_ERROR(check.Between("noticed_after_s", kill.noticed_after_s(), 0, kMostSeconds));
  const int join = kill.worker() - script.workers();
  if (join < 0 || kill.at_s() > script.join(join).at_s()) return OkStatus();
  return check.Error(
      "at_s", fmt::format("worker {} dies at {} s, but joins at {} s: it must die after that",
                          kill.worker(), kill.at_s(), script.join(join).at_s()));
}

Status CheckEvents(const EmulationScript& script, const FieldCheck& check) {
  for (int i = 0; i < script.slow_size(); ++i) {
    RT_RETURN_IF_ERROR(CheckSlow(script, script.slow(i), check.Within(fmt::format("slow[{}]", i))));
  }
  for (int i = 0; i < script.join_size(); ++i) {
    RT_RETURN_IF_ERROR(CheckTime(script.join(i), check.Within(fmt::format("join[{}]", i))));
  }
  std::set<int> killed;
  for (int i = 0; i < script.kill_size(); ++i) {
    const KillScript& kill = script.kill(i);
    const FieldCheck within = check.Within(fmt::format("kill[{}]", i));
    RT_RETURN_IF_ERROR(CheckKill(script, kill, within));
    if (!killed.insert(kill.worker()).second) {
      return within.Error("worker", fmt::format("worker {} dies twice", kill.worker()));
    }
  }
  return OkStatus();
}

Status CheckScript(const EmulationScript& script, const ConfigSource& source) {
  const FieldCheck check(&source, "");
  RT_RETURN_IF_ERROR(check.Between("workers", script.workers(), 1, kMostWorkers));
  RT_RETURN_IF_ERROR(check.Between("workers_per_host", script.workers_per_host(), 1, kMostWorkers));
  if (script.join_size() > kMostWorkers) {
    return check.Error("join", fmt::format("at most {} workers can join", kMostWorkers));
  }
  RT_RETURN_IF_ERROR(CheckLink(script.between_hosts(), check.Within("between_hosts")));
  RT_RETURN_IF_ERROR(CheckLinkWithin(script.within_host(), check.Within("within_host")));
  RT_RETURN_IF_ERROR(CheckCompute(script.compute(), check.Within("compute")));
  return CheckEvents(script, check);
}

StatusOr<EmulationScript> Finish(EmulationScript script, ConfigSource source,
                                 std::span<const std::string> overrides) {
  for (const std::string& text : overrides) {
    RT_RETURN_IF_ERROR(ApplyOverride(text, &script, &source, "--script-set"));
  }
  RT_RETURN_IF_ERROR(CheckScript(script, source));
  return script;
}

LinkModel LinkOf(const LinkScript& link) {
  return {.latency_s = link.latency_us() * 1e-6,
          .seconds_per_byte = kBitsPerByte / (link.mbit_per_s() * 1e6),
          .reduce_seconds_per_byte = 1e-9 / link.add_gb_per_s()};
}

}  // namespace

StatusOr<EmulationScript> ReadScript(const std::string& path,
                                     std::span<const std::string> overrides) {
  if (path.empty()) return ParseScript("", "the built-in script", overrides);
  EmulationScript script;
  ConfigSource source;
  RT_RETURN_IF_ERROR(ReadTextConfig(path, &script, &source));
  return Finish(std::move(script), std::move(source), overrides);
}

StatusOr<EmulationScript> ParseScript(std::string_view text, std::string_view name,
                                      std::span<const std::string> overrides) {
  EmulationScript script;
  ConfigSource source;
  RT_RETURN_IF_ERROR(ParseTextConfig(text, name, &script, &source));
  return Finish(std::move(script), std::move(source), overrides);
}

NetworkModel NetworkOf(const EmulationScript& script) {
  LinkScript within = script.within_host();
  if (!within.has_mbit_per_s()) within.set_mbit_per_s(64'000);
  if (!within.has_latency_us()) within.set_latency_us(2);
  const LinkScript& between = script.between_hosts();
  return {.within_host = LinkOf(within),
          .between_hosts = LinkOf(between),
          .cpu_seconds_per_byte = between.cpu_ns_per_byte() * 1e-9,
          .cpu_seconds_per_message = between.cpu_us_per_message() * kMicro};
}

SpeedModel SpeedOf(const EmulationScript& script) {
  std::vector<SlowPeriod> periods;
  for (const SlowScript& slow : script.slow()) {
    periods.push_back({.worker = slow.worker(),
                       .factor = slow.factor(),
                       .from_ns = Nanoseconds(slow.from_s()),
                       .to_ns = Nanoseconds(slow.to_s())});
  }
  return {script.seed(), script.compute().jitter(), std::move(periods)};
}

}  // namespace ringtail
