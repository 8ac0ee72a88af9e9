#include "apps/help/man_page.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <sstream>
#include <string_view>

#include "apps/version.h"

namespace ringtail {
namespace {

constexpr std::string_view kIndent = "  ";  // of a line of a footer that is to be typed

// `text` without a meaning for troff.
std::string Escape(std::string_view text) {
  std::string escaped;
  for (const char c : text) {
    if (c == '\\') {
      escaped += "\\e";
    } else if (c == '-') {
      escaped += "\\-";  // else a hyphen, which a shell does not understand
    } else if (c == '\n') {
      escaped += ' ';
    } else {
      escaped += c;
    }
  }
  const bool request = !text.empty() && (text.front() == '.' || text.front() == '\'');
  return request ? "\\&" + escaped : escaped;
}

std::string Upper(std::string text) {
  std::ranges::transform(text, text.begin(), [](unsigned char c) { return std::toupper(c); });
  return text;
}

std::string Heading(const std::string& text) {
  return fmt::format(".SH \"{}\"\n", Escape(Upper(text)));
}

// The argument as in a synopsis, with a leading space: " FILE", " [FILE]", " FILE...".
std::string Argument(const FlagInfo& flag) {
  if (flag.argument.empty()) return "";
  std::string argument = fmt::format("\\fI{}\\fR", Escape(flag.argument));
  if (flag.many_arguments) argument += "...";
  return flag.optional_argument ? " [" + argument + "]" : " " + argument;
}

std::string Names(const FlagInfo& flag) {
  std::string names;
  for (const std::string& name : flag.names) {
    names += fmt::format("{}\\fB{}\\fR", names.empty() ? "" : ", ", Escape(name));
  }
  return names;
}

// What --help has in brackets behind a flag.
std::string Facts(const FlagInfo& flag) {
  std::vector<std::string> facts;
  if (flag.required) facts.push_back("required");
  if (flag.repeatable && !flag.many_arguments) facts.push_back("may be repeated");
  if (!flag.range.empty()) facts.push_back("range " + flag.range);
  if (!flag.default_value.empty()) facts.push_back("default " + flag.default_value);
  return facts.empty() ? "" : fmt::format(" ({})", fmt::join(facts, "; "));
}

std::string Flag(const FlagInfo& flag) {
  std::string term = Names(flag) + Argument(flag);
  if (term.starts_with(' ')) term.erase(0, 1);
  return fmt::format(".TP\n{}\n{}\n", term, Escape(flag.description + Facts(flag)));
}

// Flags under the headings of --help; what a heading has in parentheses is a paragraph below it.
std::string Flags(const std::vector<FlagInfo>& flags) {
  std::vector<std::string> groups;
  for (const FlagInfo& flag : flags) {
    if (std::ranges::find(groups, flag.group) == groups.end()) groups.push_back(flag.group);
  }
  std::string text;
  for (const std::string& group : groups) {
    const size_t note = group.find(" (");
    text += Heading(group.substr(0, note));
    if (note != std::string::npos) text += Escape(group.substr(note + 1)) + "\n";
    for (const FlagInfo& flag : flags) {
      if (flag.group == group) text += Flag(flag);
    }
  }
  return text;
}

// A line above indented lines is their heading; other lines are paragraphs under "Notes".
std::string Footer(const std::string& footer) {
  std::vector<std::string> lines;
  std::istringstream stream(footer);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  std::string text;
  bool typed = false, notes = false, paragraph = true;  // `paragraph`: the next line begins one
  for (size_t i = 0; i < lines.size(); ++i) {
    const bool indented = lines[i].starts_with(kIndent);
    if (typed != indented) text += indented ? ".nf\n" : ".fi\n";
    typed = indented;
    if (indented) {
      text += Escape(lines[i].substr(kIndent.size())) + "\n";
    } else if (lines[i].empty()) {
      paragraph = true;
    } else if (i + 1 < lines.size() && lines[i + 1].starts_with(kIndent)) {
      text += Heading(lines[i]);
    } else {
      if (paragraph) text += notes ? ".PP\n" : Heading("Notes");
      notes = true;
      paragraph = false;
      text += Escape(lines[i]) + "\n";
    }
  }
  return typed ? text + ".fi\n" : text;
}

std::string Beginning(const std::string& page, const std::string& description) {
  return fmt::format(
      ".TH \"{}\" 1 \"\" \"Ringtail {}\" \"Ringtail\"\n.nh\n.ad l\n.SH NAME\n{} \\- {}\n.SH "
      "SYNOPSIS\n",
      Escape(Upper(page)), kRingtailVersion, Escape(page), Escape(description));
}

std::string Synopsis(const std::string& command, const std::vector<FlagInfo>& flags) {
  std::string line = fmt::format("\\fB{}\\fR [\\fIFLAGS\\fR]", Escape(command));
  for (const FlagInfo& flag : flags) {
    if (flag.names.empty()) line += Argument(flag);
  }
  return line + "\n";
}

std::string PageOfVerb(const std::string& program, const VerbInfo& verb) {
  const std::string page = program + "-" + verb.name;
  return Beginning(page, verb.description) + Synopsis(program + " " + verb.name, verb.flags) +
         Flags(verb.flags) + Footer(verb.footer) +
         fmt::format(".SH \"SEE ALSO\"\n.BR {} (1)\n", Escape(program));
}

std::string PageOfProgram(const ProgramInfo& program) {
  const VerbInfo& own = program.own;
  std::string text = Beginning(own.name, own.description);
  if (program.verbs.empty())
    return text + Synopsis(own.name, own.flags) + Flags(own.flags) + Footer(own.footer);
  text += fmt::format("\\fB{}\\fR \\fIVERB\\fR [\\fIFLAGS\\fR]\n", Escape(own.name));
  text += Heading("Verbs");
  for (const VerbInfo& verb : program.verbs) {
    text += fmt::format(".TP\n.BR {}\\-{} (1)\n{}\n", Escape(own.name), Escape(verb.name),
                        Escape(verb.description));
  }
  return text + Flags(own.flags) + Footer(own.footer);
}

}  // namespace

std::vector<ManPage> ManPages(const ProgramInfo& program, const std::string& other_name) {
  const std::string& name = program.own.name;
  std::vector<ManPage> pages = {{name + ".1", PageOfProgram(program)}};
  for (const VerbInfo& verb : program.verbs) {
    pages.push_back({fmt::format("{}-{}.1", name, verb.name), PageOfVerb(name, verb)});
  }
  if (!other_name.empty()) {
    pages.push_back({other_name + ".1", fmt::format(".so man1/{}.1\n", name)});
  }
  return pages;
}

}  // namespace ringtail
