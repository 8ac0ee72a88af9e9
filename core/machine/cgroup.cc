#include "core/machine/cgroup.h"

#include <fmt/core.h>

#include <sstream>

#include "core/storage/file.h"

namespace ringtail {
namespace {

constexpr int64_t kMaxControlFileBytes = 1 << 16;

std::string ReadControlFile(const std::string& path) {
  StatusOr<std::string> text = ReadFileText(path, kMaxControlFileBytes);
  return text.ok() ? *std::move(text) : std::string();
}

// One line of /proc/self/cgroup, "number:controllers:/group"; v2's has no controllers.
struct CgroupLine {
  std::string controllers, group;
};

std::optional<CgroupLine> ParseLine(const std::string& line) {
  const size_t first = line.find(':');
  if (first == std::string::npos) return std::nullopt;
  const size_t second = line.find(':', first + 1);
  if (second == std::string::npos || line.compare(second + 1, 1, "/") != 0) return std::nullopt;
  return CgroupLine{line.substr(first + 1, second - first - 1), line.substr(second + 1)};
}

bool HasController(const std::string& controllers, const std::string& wanted) {
  return ("," + controllers + ",").find("," + wanted + ",") != std::string::npos;
}

// Visits the mount, then `group` ("/a/b") and its parents.
void VisitUpwards(CgroupVersion version, const std::string& mount, std::string group,
                  const std::function<void(CgroupVersion, const std::string&)>& visit) {
  if (group.find("..") != std::string::npos) group.clear();  // outside our namespace
  visit(version, mount);
  while (group.size() > 1) {
    visit(version, mount + group);
    group.resize(group.rfind('/'));
  }
}

}  // namespace

void ForEachCgroup(const std::string& root, const std::string& controller,
                   const std::function<void(CgroupVersion, const std::string&)>& visit) {
  const std::string mount = root + "/sys/fs/cgroup";
  std::istringstream lines(ReadControlFile(root + "/proc/self/cgroup"));
  for (std::string text; std::getline(lines, text);) {
    const auto line = ParseLine(text);
    if (!line) continue;
    if (line->controllers.empty()) {
      VisitUpwards(CgroupVersion::kV2, mount, line->group, visit);
    } else if (HasController(line->controllers, controller)) {
      // Mounted under the names of all controllers that share it, or linked under one name.
      for (const std::string& name : {line->controllers, controller}) {
        const std::string folder = fmt::format("{}/{}", mount, name);
        VisitUpwards(CgroupVersion::kV1, folder, line->group, visit);
      }
    }
  }
}

std::vector<double> ReadCgroupNumbers(const std::string& path) {
  std::vector<double> numbers;
  std::istringstream stream(ReadControlFile(path));
  for (double number; stream >> number;) numbers.push_back(number);
  return numbers;
}

std::optional<double> ReadCgroupField(const std::string& path, const std::string& key) {
  std::istringstream stream(ReadControlFile(path));
  std::string name;
  double number;
  while (stream >> name >> number) {
    if (name == key) return number;
  }
  return std::nullopt;
}

}  // namespace ringtail
