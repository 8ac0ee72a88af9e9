// The price of every algorithm by its plans (dist/collectives/cost_table.h), as a table or JSON:
// `bench_allreduce --model`. Needs no network and no second process.
// Thread-safety: functions without state.
#ifndef RINGTAIL_APPS_BENCH_ALLREDUCE_MODEL_TABLE_H_
#define RINGTAIL_APPS_BENCH_ALLREDUCE_MODEL_TABLE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "dist/collectives/cost_table.h"

namespace ringtail {

struct ModelTableOptions {
  std::vector<std::string> algorithms;  // names
  std::vector<int> worlds;
  std::vector<int64_t> bytes;
  LinkModel links;
  int ranks_per_host = 1;
};

std::string ModelTable(const ModelTableOptions& options);
std::string ModelJson(const ModelTableOptions& options);

}  // namespace ringtail

#endif  // RINGTAIL_APPS_BENCH_ALLREDUCE_MODEL_TABLE_H_
