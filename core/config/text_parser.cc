#include "core/config/text_parser.h"

#include <google/protobuf/descriptor.h>
#include <google/protobuf/io/tokenizer.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>

#include <cctype>
#include <set>

#include "core/config/renamed_fields.h"
#include "core/config/unknown_field.h"
#include "fmt/format.h"

namespace ringtail {
namespace {

namespace pb = google::protobuf;

constexpr int kMaxNesting = 64;  // the parser recurses: more would overflow the stack

class FirstError : public pb::io::ErrorCollector {
 public:
  void AddError(int line, pb::io::ColumnNumber column, const std::string& message) override {
    if (!error_) error_ = ParseFailure{line, column, 0, message, ""};
  }
  const std::optional<ParseFailure>& error() const { return error_; }

 private:
  std::optional<ParseFailure> error_;
};

// The quoted words of a parser message.
std::vector<std::string> QuotedWords(std::string_view message) {
  std::vector<std::string> words;
  while (true) {
    const size_t open = message.find('"');
    if (open == std::string_view::npos) return words;
    const size_t close = message.find('"', open + 1);
    if (close == std::string_view::npos) return words;
    words.emplace_back(message.substr(open + 1, close - open - 1));
    message.remove_prefix(close + 1);
  }
}

// All enumeration values of fields called `field`, in `type` or below.
void CollectEnumValues(const pb::Descriptor& type, const std::string& field,
                       std::set<const pb::Descriptor*>* seen, std::vector<std::string>* values) {
  if (!seen->insert(&type).second) return;
  for (int i = 0; i < type.field_count(); ++i) {
    const pb::FieldDescriptor& f = *type.field(i);
    if (f.message_type() != nullptr) {
      CollectEnumValues(*f.message_type(), field, seen, values);
    } else if (f.enum_type() != nullptr && f.name() == field) {
      for (int v = 0; v < f.enum_type()->value_count(); ++v) {
        values->push_back(f.enum_type()->value(v)->name());
      }
    }
  }
}

std::string UnknownEnumValue(const std::string& value, const std::string& field,
                             const pb::Descriptor& root) {
  std::vector<std::string> candidates;
  std::set<const pb::Descriptor*> seen;
  CollectEnumValues(root, field, &seen, &candidates);
  return fmt::format("unknown value '{}' of '{}'{}", value, field, Suggestion(value, candidates));
}

// The byte of the quote that is opened in line `line` and not closed there.
size_t OpenQuote(const SourceText& source, int line) {
  const std::string_view text = source.text();
  for (size_t at = source.OffsetOf(line, 0); at < text.size() && text[at] != '\n';) {
    const bool quoted = text[at] == '"' || text[at] == '\'' || text[at] == '#';
    const size_t end = quoted ? EndOfQuoted(text, at) : at + 1;
    const bool closed = end > at + 1 && text[end - 1] == text[at];
    if (quoted && text[at] != '#' && !closed) return at;
    at = end;
  }
  return source.OffsetOf(line, 0);
}

// Rewrites a parser message in our words; unknown messages stay, as part of a sentence.
void Rephrase(const SourceText& source, const pb::Descriptor& root, ParseFailure* failure) {
  std::string& message = failure->sentence;
  const std::vector<std::string> words = QuotedWords(message);
  const auto is = [&](std::string_view start, size_t count) {
    return message.starts_with(start) && words.size() == count;
  };
  if (is("Message type", 2)) {
    failure->word = words[1];
    const std::string_view before = source.text().substr(0, failure->OffsetIn(source));
    const pb::Descriptor* type = root.file()->pool()->FindMessageTypeByName(words[0]);
    if (type != nullptr) message = UnknownFieldAt(words[1], *type, before, root);
  } else if (is("Unknown enumeration value", 2)) {
    message = UnknownEnumValue(words[0], words[1], root);
    failure->word = words[0];
  } else if (is("Non-repeated field", 1)) {
    message = fmt::format("field '{}' is given twice; keep one", words[0]);
    failure->word = words[0];
  } else if (is("Field", 3)) {
    message = fmt::format("'{}' and '{}' exclude one another; keep one", words[0], words[1]);
    failure->word = words[0];
  } else if (message.starts_with("String literals cannot cross line")) {
    message = "a quote is not closed in this line";
    failure->column = 0;
    failure->bytes = OpenQuote(source, failure->line) - source.OffsetOf(failure->line, 0);
  } else {
    message[0] = static_cast<char>(std::tolower(static_cast<unsigned char>(message[0])));
    if (message.ends_with('.')) message.pop_back();
  }
}

}  // namespace

size_t ParseFailure::OffsetIn(const SourceText& source) const {
  const size_t at = source.OffsetOf(line, column) + bytes;
  if (word.empty()) return at;
  const size_t found = source.text().rfind(word, at);  // the parser has already passed the word
  return found == std::string_view::npos ? at : found;
}

std::optional<ParseFailure> RunTextParser(std::string_view text, pb::Message* config,
                                          pb::TextFormat::ParseInfoTree* locations) {
  FirstError errors;
  pb::TextFormat::Parser parser;
  parser.RecordErrorsTo(&errors);
  parser.WriteLocationsTo(locations);
  parser.SetRecursionLimit(kMaxNesting);
  const std::string current = WithCurrentFieldNames(text);
  pb::io::ArrayInputStream stream(current.data(), static_cast<int>(current.size()));
  if (parser.Parse(&stream, config)) return std::nullopt;
  ParseFailure failure = errors.error().value_or(ParseFailure{0, 0, 0, "not a valid config", ""});
  Rephrase(SourceText("", current), *config->GetDescriptor(), &failure);
  return failure;
}

}  // namespace ringtail
