#include "apps/launch/resume_command.h"

#include <algorithm>
#include <filesystem>
#include <string_view>

namespace ringtail {
namespace {

constexpr std::string_view kHarmless = "%+,-./:=@_";  // beside letters and digits

bool Trains(std::span<const std::string> program) {
  for (size_t i = 0; i + 1 < program.size(); ++i) {  // behind `env` or the like, too
    const std::string name = std::filesystem::path(program[i]).filename();
    if ((name == "ringtail" || name == "dogs_vs_cats") && program[i + 1] == "train") return true;
  }
  return false;
}

bool Resumes(const std::string& word) {
  return word == "--resume" || word.starts_with("--resume=");
}

}  // namespace

std::string ShellWord(const std::string& word) {
  const bool plain = !word.empty() && std::ranges::all_of(word, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           kHarmless.find(c) != std::string_view::npos;
  });
  if (plain) return word;
  std::string quoted = "'";
  for (const char c : word) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

std::string ResumeCommand(std::span<const std::string> launcher,
                          std::span<const std::string> program) {
  if (!Trains(program)) return "";
  std::string command;
  for (const std::string& word : launcher) command += ShellWord(word) + " ";
  command += "--";
  for (const std::string& word : program) command += " " + ShellWord(word);
  return std::ranges::any_of(program, Resumes) ? command : command + " --resume";
}

}  // namespace ringtail
