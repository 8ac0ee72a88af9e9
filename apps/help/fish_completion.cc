#include <fmt/core.h>

#include "apps/help/completion.h"

namespace ringtail {
namespace {

constexpr std::string_view kFishScript =
    R"fish(# Completion of fish for @names@, written by `@program@ completion fish`.

function __@program@_configs
    printf '%s\n' @configs@
end

function __@program@_fields
    printf '%s\n' @fields@
end

function __@program@_script_fields
    printf '%s\n' @script_fields@
end

@wraps@complete -c @program@ -f
@lines@)fish";

// In single quotes fish knows \' and \\ only.
std::string Quoted(std::string_view text) {
  std::string quoted = "'";
  for (const char c : text) {
    if (c == '\'' || c == '\\') quoted += '\\';
    quoted += c;
  }
  return quoted + "'";
}

std::string Words(const std::vector<std::string>& words) {
  std::string line;
  for (const std::string& word : words) line += (line.empty() ? "" : " ") + Quoted(word);
  return line;
}

// -r: an argument follows, -f and -F: without and with files, -a: what to offer.
std::string OfferOptions(const ProgramInfo& program, const FlagInfo& flag) {
  const auto call = [&](std::string_view function) {
    return fmt::format("'(__{}_{})'", program.own.name, function);
  };
  switch (flag.offer) {
    case Offer::kNothing:
      return " -f";
    case Offer::kChoices: {
      std::string choices;
      for (const std::string& choice : flag.choices)
        choices += (choices.empty() ? "" : " ") + choice;
      return " -f -a " + Quoted(choices);
    }
    case Offer::kFiles:
      return " -F";
    case Offer::kFolders:
      return " -f -a '(__fish_complete_directories)'";
    case Offer::kConfigs:
      return " -F -a " + call("configs");
    case Offer::kConfigNames:
      return " -f -a " + call("configs");
    case Offer::kFields:
      return " -f -a " + call("fields");
    case Offer::kScriptFields:
      return " -f -a " + call("script_fields");
    case Offer::kVerbs: {
      std::string verbs;
      for (const std::string& verb : VerbNames(program)) verbs += (verbs.empty() ? "" : " ") + verb;
      return " -f -a " + Quoted(verbs);
    }
  }
  return "";
}

std::string Line(const ProgramInfo& program, const std::string& condition, const FlagInfo& flag) {
  std::string line = fmt::format("complete -c {} -n {}", program.own.name, condition);
  for (const std::string& name : flag.names) {
    line += name.starts_with("--") ? " -l " + name.substr(2) : " -s " + name.substr(1);
  }
  if (!flag.argument.empty()) {
    // (With an optional argument, -r would not let the flag stand alone.)
    if (!flag.names.empty() && !flag.optional_argument) line += " -r";
    line += OfferOptions(program, flag);
  }
  return fmt::format("{} -d {}\n", line, Quoted(flag.description));
}

}  // namespace

std::string FishCompletion(const ProgramInfo& program, const std::string& other_name,
                           const CompletionWords& words) {
  const std::string& name = program.own.name;
  std::string lines, wraps;
  if (!other_name.empty()) wraps = fmt::format("complete -c {} -w {}\n", other_name, name);
  for (const FlagInfo& flag : program.own.flags) {
    lines += Line(program, "__fish_use_subcommand", flag);
  }
  for (const VerbInfo& verb : program.verbs) {
    lines += fmt::format("complete -c {} -n __fish_use_subcommand -a {} -d {}\n", name, verb.name,
                         Quoted(verb.description));
  }
  for (const VerbInfo& verb : program.verbs) {
    const std::string condition = fmt::format("'__fish_seen_subcommand_from {}'", verb.name);
    for (const FlagInfo& flag : verb.flags) lines += Line(program, condition, flag);
  }
  return FillIn(kFishScript, {{"program", name},
                              {"names", name + (other_name.empty() ? "" : " " + other_name)},
                              {"configs", Words(words.configs)},
                              {"fields", Words(words.fields)},
                              {"script_fields", Words(words.script_fields)},
                              {"wraps", wraps},
                              {"lines", lines}});
}

}  // namespace ringtail
