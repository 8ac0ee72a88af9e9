// CSV files (RFC 4180): one field to be written, in quotes where that is required; a whole file read.
// Thread-safety: functions without state.
#ifndef RINGTAIL_APPS_CSV_H_
#define RINGTAIL_APPS_CSV_H_

#include <string>
#include <string_view>
#include <vector>

#include "core/status.h"

namespace ringtail {

std::string CsvField(std::string_view text);

// The fields of each line. A quoted field may hold commas, line ends and doubled quotes.
// InvalidArgument, with the line, if a quote is not closed or stands where none may stand.
StatusOr<std::vector<std::vector<std::string>>> ParseCsv(std::string_view text);

}  // namespace ringtail

#endif  // RINGTAIL_APPS_CSV_H_
