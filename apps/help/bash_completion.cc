#include <fmt/core.h>

#include "apps/help/completion.h"

namespace ringtail {
namespace {

constexpr std::string_view kBashScript =
    R"sh(# Completion of bash for @program@@other@, written by `@program@ completion bash`.

# Adds those of the words behind $1 that begin with $1.
_@program@_offer() {
  local typed=$1 word
  shift
  for word; do
    [[ $word == "$typed"* ]] && COMPREPLY+=("$word")
  done
}

# Adds files that begin with $1; $2: -f files and folders, -d folders.
_@program@_files() {
  local file
  compopt -o filenames 2>/dev/null
  while IFS= read -r file; do COMPREPLY+=("$file"); done < <(compgen "$2" -- "$1")
}

_@program@_verbs() { _@program@_offer "$1" @verbs@; }

_@program@_configs() { _@program@_offer "$1" @configs@; }

_@program@_fields() {
  _@program@_offer "$1" @fields@
}

_@program@_script_fields() {
  _@program@_offer "$1" @script_fields@
}

# $1: what is typed; $2: a verb, or nothing.
_@program@_flags() {
  case $2 in
@flags@  esac
}

# The argument of a flag. $1: what is typed; $2: the verb; $3: the flag. False if it takes none.
_@program@_argument() {
  case "$2 $3" in
@arguments@    *) return 1 ;;
  esac
  return 0
}

# An argument without a flag. $1: what is typed; $2: the verb.
_@program@_positional() {
  case $2 in
@positionals@    *) return 1 ;;
  esac
  return 0
}

_@program@() {
  local -a words=()
  local i word joins= verb= flag= typed front= back=
  COMPREPLY=()
  # Readline splits words at '=', too: they are put together again.
  for ((i = 1; i <= COMP_CWORD; ++i)); do
    word=${COMP_WORDS[i]}
    if [[ $word == = && ${#words[@]} -gt 0 ]]; then
      words[-1]+==
      joins=yes
    elif [[ $joins && $word && $word != --* ]]; then
      words[-1]+=$word
      joins=
    else
      words+=("$word")
      joins=
    fi
  done
  typed=${words[-1]}
  for word in "${words[@]::${#words[@]}-1}"; do
    if [[ $word == -* ]]; then
      flag=$word
      [[ $word == *=* ]] && flag=
      continue
    fi
    [[ $verb ]] || verb=$word
    case "$verb $flag" in
@many@      *) flag= ;;
    esac
  done
  if [[ $typed == --*=* ]]; then
    flag=${typed%%=*}
    [[ $COMP_WORDBREAKS == *=* ]] || front=$flag=
    typed=${typed#*=}
    _@program@_argument "$typed" "$verb" "$flag"
  elif [[ $typed == -* ]]; then
    _@program@_flags "$typed" "$verb"
  elif [[ ! $verb ]]; then
    _@program@_verbs "$typed"
  else
    _@program@_argument "$typed" "$verb" "$flag" || _@program@_positional "$typed" "$verb" ||
      _@program@_flags "$typed" "$verb"
  fi
  # Readline replaces what stands behind the last '='.
  [[ $typed == *=* && $COMP_WORDBREAKS == *=* ]] && back=${typed%=*}=
  for ((i = 0; i < ${#COMPREPLY[@]}; ++i)); do
    COMPREPLY[i]=$front${COMPREPLY[i]#"$back"}
  done
  if ((${#COMPREPLY[@]} == 1)) && [[ ${COMPREPLY[0]} == *[=[] ]]; then
    compopt -o nospace 2>/dev/null  # a value follows
  fi
  return 0
}

complete -F _@program@ @names@
)sh";

// The command that offers what `flag` takes; it sees what is typed as $1.
std::string OfferCommand(const std::string& program, const FlagInfo& flag) {
  const auto call = [&](std::string_view function) {
    return fmt::format("_{}_{} \"$1\"", program, function);
  };
  switch (flag.offer) {
    case Offer::kNothing:
      return ":";
    case Offer::kChoices:
      return call("offer") + " " + ShellWords(flag.choices);
    case Offer::kFiles:
      return call("files") + " -f";
    case Offer::kFolders:
      return call("files") + " -d";
    case Offer::kConfigs:
      return call("configs") + "; " + call("files") + " -f";
    case Offer::kConfigNames:
      return call("configs");
    case Offer::kFields:
      return call("fields");
    case Offer::kScriptFields:
      return call("script_fields");
    case Offer::kVerbs:
      return call("verbs");
  }
  return ":";
}

std::string FlagCase(const VerbInfo& verb, const std::string& program, const std::string& pattern) {
  return fmt::format("    {}) _{}_offer \"$1\" {} ;;\n", pattern, program,
                     ShellWords(FlagNames(verb.flags)));
}

}  // namespace

std::string BashCompletion(const ProgramInfo& program, const std::string& other_name,
                           const CompletionWords& words) {
  const std::string& name = program.own.name;
  std::string flags = FlagCase(program.own, name, "\"\""), arguments, positionals, many;
  for (const VerbInfo& verb : program.verbs) {
    flags += FlagCase(verb, name, verb.name);
    for (const FlagInfo& flag : verb.flags) {
      if (flag.argument.empty()) continue;
      const std::string offer = OfferCommand(name, flag);
      if (flag.names.empty()) positionals += fmt::format("    {}) {} ;;\n", verb.name, offer);
      for (const std::string& flag_name : flag.names) {
        arguments +=
            fmt::format("    {}) {} ;;\n", ShellQuoted(verb.name + " " + flag_name), offer);
        // The flag stays: its next argument may follow.
        if (flag.many_arguments) {
          many += fmt::format("      {}) ;;\n", ShellQuoted(verb.name + " " + flag_name));
        }
      }
    }
  }
  const std::string other = other_name.empty() ? "" : " " + other_name;
  return FillIn(kBashScript, {{"program", name},
                              {"other", other.empty() ? "" : " and" + other},
                              {"names", name + other},
                              {"verbs", ShellWords(VerbNames(program))},
                              {"configs", ShellWords(words.configs)},
                              {"fields", ShellWords(words.fields)},
                              {"script_fields", ShellWords(words.script_fields)},
                              {"flags", flags},
                              {"arguments", arguments},
                              {"positionals", positionals},
                              {"many", many}});
}

}  // namespace ringtail
