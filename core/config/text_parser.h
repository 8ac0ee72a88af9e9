// Protobuf's text-format parser with Ringtail's limits and errors. Private to core/config/.
// Thread-safety: functions without state.
#ifndef RINGTAIL_CORE_CONFIG_TEXT_PARSER_H_
#define RINGTAIL_CORE_CONFIG_TEXT_PARSER_H_

#include <google/protobuf/text_format.h>

#include <optional>
#include <string>
#include <string_view>

#include "core/config/source_text.h"
#include "core/status.h"

namespace ringtail {

// The first error that the parser found.
struct ParseFailure {
  int line = 0;  // as the tokenizer counts, from 0
  int column = 0;
  size_t bytes = 0;      // behind the column
  std::string sentence;  // with the nearest valid name if a name is wrong
  std::string word;      // the wrong word, at the position or shortly before it; may be empty

  size_t OffsetIn(const SourceText& source) const;
};

// Parses `text` into `config` (cleared first); nullopt on success. `locations` may be null.
std::optional<ParseFailure> RunTextParser(std::string_view text, google::protobuf::Message* config,
                                          google::protobuf::TextFormat::ParseInfoTree* locations);

}  // namespace ringtail

#endif  // RINGTAIL_CORE_CONFIG_TEXT_PARSER_H_
