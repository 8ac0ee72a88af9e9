#include <fmt/core.h>

#include "apps/help/completion.h"

namespace ringtail {
namespace {

constexpr std::string_view kZshScript = R"zsh(#compdef @names@
# Completion of zsh for @names@, written by `@program@ completion zsh`.

_@program@_verbs() {
  local -a verbs=(
@verbs@  )
  _describe verb verbs
}

_@program@_configs() { compadd -- @configs@ }

_@program@_configs_or_files() { _@program@_configs; _files }

# Behind an assignment without its value stands no blank.
_@program@_fields() {
  compadd -S '' -- @open_fields@
  compadd -- @fields@
}

_@program@_script_fields() {
  compadd -S '' -- @open_script_fields@
  compadd -- @script_fields@
}

_@program@() {
  local context state state_descr line
  typeset -A opt_args
  _arguments -C \
@own@    '1: :->verb' '*:: :->arguments' && return
  case $state in
    verb) _@program@_verbs ;;
    arguments)
      case $words[1] in
@cases@      esac
      ;;
  esac
}

if [ "$funcstack[1]" = _@program@ ]; then
  _@program@ "$@"  # this file is the function
else
  compdef _@program@ @names@
fi
)zsh";

// Behind a backslash the characters that end a part of a specification.
std::string Protected(std::string_view text, std::string_view ends) {
  std::string safe;
  for (const char c : text) {
    if (c == '\\' || ends.find(c) != std::string_view::npos) safe += '\\';
    safe += c;
  }
  return safe;
}

std::string Action(const std::string& program, const FlagInfo& flag) {
  switch (flag.offer) {
    case Offer::kNothing:
      return " ";
    case Offer::kChoices: {
      std::string choices;
      for (const std::string& choice : flag.choices)
        choices += (choices.empty() ? "" : " ") + choice;
      return "(" + choices + ")";
    }
    case Offer::kFiles:
      return "_files";
    case Offer::kFolders:
      return "_files -/";
    case Offer::kConfigs:
      return "_" + program + "_configs_or_files";
    case Offer::kConfigNames:
      return "_" + program + "_configs";
    case Offer::kFields:
      return "_" + program + "_fields";
    case Offer::kScriptFields:
      return "_" + program + "_script_fields";
    case Offer::kVerbs:
      return "_" + program + "_verbs";
  }
  return " ";
}

// Specifications of zsh's _arguments: '*--set=[description]:FIELD=VALUE:action', a line each.
std::string Specifications(const std::string& program, const std::vector<FlagInfo>& flags) {
  std::string lines;
  const auto add = [&](const std::string& specification) {
    lines += fmt::format("    {} \\\n", ShellQuoted(specification));
  };
  for (const FlagInfo& flag : flags) {
    std::string argument;
    if (!flag.argument.empty()) {
      const bool optional = flag.optional_argument || (flag.names.empty() && !flag.required);
      argument = fmt::format("{}:{}:{}", optional ? ":" : "", Protected(flag.argument, ":"),
                             Action(program, flag));
    }
    if (flag.names.empty()) {
      add((flag.many_arguments ? "*" : "1") + argument);
      continue;
    }
    const bool again = flag.repeatable || flag.many_arguments;
    for (const std::string& name : flag.names) {
      const bool equals = name.starts_with("--") && !argument.empty() && !flag.optional_argument;
      add(fmt::format("{}{}{}[{}]{}", again ? "*" : "", name, equals ? "=" : "",
                      Protected(flag.description, "[]"), argument));
    }
  }
  return lines;
}

// Assignments whose value is to be typed, or the others.
std::vector<std::string> Assignments(const std::vector<std::string>& fields, bool open) {
  std::vector<std::string> some;
  for (const std::string& field : fields) {
    if ((field.ends_with('=') || field.ends_with('[')) == open) some.push_back(field);
  }
  return some;
}

}  // namespace

std::string ZshCompletion(const ProgramInfo& program, const std::string& other_name,
                          const CompletionWords& words) {
  const std::string& name = program.own.name;
  std::string verbs, cases;
  for (const VerbInfo& verb : program.verbs) {
    verbs +=
        fmt::format("    {}\n", ShellQuoted(verb.name + ":" + Protected(verb.description, "")));
    std::string specifications = Specifications(name, verb.flags);
    specifications.erase(specifications.rfind(" \\\n"));
    cases += fmt::format("{})\n_arguments \\\n{}\n;;\n", verb.name, specifications);
  }
  return FillIn(kZshScript,
                {{"program", name},
                 {"names", name + (other_name.empty() ? "" : " " + other_name)},
                 {"verbs", verbs},
                 {"configs", ShellWords(words.configs)},
                 {"open_fields", ShellWords(Assignments(words.fields, true))},
                 {"fields", ShellWords(Assignments(words.fields, false))},
                 {"open_script_fields", ShellWords(Assignments(words.script_fields, true))},
                 {"script_fields", ShellWords(Assignments(words.script_fields, false))},
                 {"own", Specifications(name, program.own.flags)},
                 {"cases", cases}});
}

}  // namespace ringtail
