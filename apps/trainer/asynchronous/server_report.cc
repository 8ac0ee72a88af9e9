#include "apps/trainer/asynchronous/server_report.h"

#include <fmt/core.h>

#include "core/text/counted.h"
#include "dist/parameter_server/rule_choice.h"

namespace ringtail {
namespace {

constexpr double kP95 = 0.95;

}  // namespace

std::string DescribeRule(const AsynchronousConfig& config) {
  const AsynchronousRule rule = RuleOf(config);
  std::string text = rule.Describe();
  if (PullsAhead(config)) {
    text += "; the next weights are pulled while a gradient is computed";
  }
  if (config.pull() == AsynchronousConfig::BF16) text += "; weights travel in 16 bits";
  if (config.pull() == AsynchronousConfig::DELTA) text += "; weights travel as 8-bit differences";
  return text;
}

std::string DescribeServers(const AsynchronousConfig& config, int servers, int workers) {
  return fmt::format("{}{} for {}: {}", Counted(servers, "server"),
                     config.dedicated() ? " on ranks of their own" : "", Counted(workers, "worker"),
                     DescribeRule(config));
}

Metrics MetricsOfUpdates(const UpdateCounts& counts, double seconds) {
  Metrics metrics;
  metrics.kind = Metrics::Kind::kUpdate;
  metrics.batch = counts.rows;
  if (counts.rows > 0) {
    const auto rows = static_cast<double>(counts.rows);
    metrics.loss = counts.loss_sum / rows;
    metrics.accuracy = static_cast<double>(counts.correct) / rows;
    metrics.images_per_s = rows / seconds;
    metrics.servers.staleness = counts.staleness.Mean();
    metrics.servers.staleness_p95 = counts.staleness.Quantile(kP95);
    metrics.servers.most_stale = counts.staleness.max();
    metrics.servers.staleness_histogram = counts.staleness.histogram();
  }
  metrics.servers.version = counts.version;
  metrics.servers.discarded = counts.discarded;
  metrics.servers.refused = counts.refused;
  return metrics;
}

}  // namespace ringtail
