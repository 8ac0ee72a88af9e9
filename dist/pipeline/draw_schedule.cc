#include "dist/pipeline/draw_schedule.h"

#include <fmt/core.h>

#include <algorithm>
#include <vector>

#include "dist/pipeline/schedule_cost.h"

namespace ringtail {
namespace {

constexpr char kGap[] = " ...";

using Cells = std::vector<std::string>;  // by column; "" where a stage waits

std::vector<Cells> CellsOf(const PipelineShape& shape) {
  PipelineCosts costs;
  costs.stages.assign(shape.stages, {.forward_s = 1, .backward_s = 1});
  costs.boundaries.resize(shape.stages - 1);
  const ScheduleCost cost = CostOfSchedule(shape, costs);
  std::vector<Cells> rows(shape.stages, Cells(static_cast<size_t>(cost.step_s)));
  for (int s = 0; s < shape.stages; ++s) {
    const std::vector<StageOperation> operations = StageOperations(shape, s);
    for (size_t i = 0; i < operations.size(); ++i) {
      rows[s][static_cast<size_t>(cost.start_s[s][i])] = fmt::format(
          "{}{}", operations[i].pass == PassKind::kForward ? 'F' : 'B', operations[i].micro_batch);
    }
  }
  return rows;
}

}  // namespace

std::string DrawSchedule(const PipelineShape& shape, int width) {
  const std::vector<Cells> rows = CellsOf(shape);
  const auto columns = static_cast<int>(rows[0].size());
  const auto digits = [](int largest) { return std::to_string(largest).size(); };
  const size_t cell = 1 + digits(shape.micro_batches - 1);
  const size_t name = digits(shape.stages - 1);
  const int used = static_cast<int>(fmt::formatted_size("stage {:<{}} ", 0, name));
  const int column_width = static_cast<int>(cell) + 1;
  int head = columns, tail = 0;  // columns before and after the gap
  if (used + columns * column_width > width) {
    const int room = width - used - static_cast<int>(sizeof(kGap) - 1);
    const int drawn = std::clamp(room / column_width, 2, columns);
    head = (drawn + 1) / 2;
    tail = drawn - head;
  }
  std::string text;
  for (int s = 0; s < shape.stages; ++s) {
    std::string line = fmt::format("stage {:<{}} ", s, name);
    for (int c = 0; c < columns; ++c) {
      if (c == head) line += kGap;
      if (c >= head && c < columns - tail) continue;
      line += fmt::format(" {:<{}}", rows[s][c].empty() ? "." : rows[s][c], cell);
    }
    text += line.substr(0, line.find_last_not_of(' ') + 1) + '\n';
  }
  return text;
}

}  // namespace ringtail
