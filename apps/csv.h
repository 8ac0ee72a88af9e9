// One field of a CSV file, in quotes where RFC 4180 requires them.
#ifndef RINGTAIL_APPS_CSV_H_
#define RINGTAIL_APPS_CSV_H_

#include <string>
#include <string_view>

namespace ringtail {

std::string CsvField(std::string_view text);

}  // namespace ringtail

#endif  // RINGTAIL_APPS_CSV_H_
