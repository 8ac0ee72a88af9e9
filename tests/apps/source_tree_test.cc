// Properties of the source tree as a whole, which no test of a single folder can check: includes
// between folders, sizes of folders and files, and statements of READMEs about other files.
#include <gmock/gmock.h>
#include <google/protobuf/descriptor.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <functional>
#include <map>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "core/storage/file.h"
#include "dist/collectives/algorithms.h"
#include "dist/compression/compression.pb.h"
#include "tests/apps/program.h"

namespace ringtail {
namespace {

using testing::HasSubstr;

std::string ReadSource(const std::string& path) {
  constexpr int64_t kMaxBytes = 1 << 20;
  return ReadFileText(std::string(RT_SOURCE_DIR) + "/" + path, kMaxBytes).value();
}

// The first group of every match of `pattern` in `text`.
std::vector<std::string> Find(const std::string& text, const std::string& pattern) {
  const std::regex regex(pattern);
  std::vector<std::string> found;
  for (std::sregex_iterator at(text.begin(), text.end(), regex), end; at != end; ++at) {
    found.push_back((*at)[1]);
  }
  return found;
}

// Calls `fn` with the path, relative to the root of the tree, and the text of every source below
// `folder`.
int ForEachSource(const std::string& folder,
                  const std::function<void(const std::string&, const std::string&)>& fn) {
  int sources = 0;
  const std::filesystem::path root = RT_SOURCE_DIR;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(root / folder)) {
    const std::string extension = entry.path().extension().string();
    if (extension != ".h" && extension != ".cc") continue;
    const std::string path = std::filesystem::relative(entry.path(), root).string();
    fn(path, ReadSource(path));
    ++sources;
  }
  return sources;
}

std::string TopFolder(const std::string& path) { return path.substr(0, path.find('/')); }

TEST(SourceTreeTest, SiblingsNeverIncludeOneAnother) {
  for (const std::string folder : {"core", "layers", "optim", "data", "dist"}) {
    const int sources =
        ForEachSource(folder, [&](const std::string& path, const std::string& text) {
          for (const std::string& header :
               Find(text, "#include [<\"]((core|layers|optim|data|dist|apps|tests)/[^>\"]+)")) {
            EXPECT_THAT(TopFolder(header), testing::AnyOf(folder, "core"))
                << path << " includes " << header;
          }
        });
    EXPECT_GT(sources, 10) << folder;
  }
}

// dnnl_util.h is private to layers/: sources may include it, headers may not.
TEST(SourceTreeTest, OneDnnAppearsInNoPublicHeader) {
  int sources = 0;
  for (const std::string folder : {"core", "layers", "optim", "data", "dist", "apps"}) {
    ForEachSource(folder, [&](const std::string& path, const std::string& text) {
      const bool has_onednn =
          !Find(text, "#include ([<\"](oneapi|dnnl|layers/onednn/dnnl_util)[^>\"]*)").empty();
      if (!has_onednn) return;
      ++sources;
      EXPECT_TRUE(path.ends_with(".cc") || path == "layers/onednn/dnnl_util.h") << path;
    });
  }
  EXPECT_GT(sources, 5);
}

// All files of the tree, relative to its root: "core/storage/file.h".
std::vector<std::string> TreeFiles() {
  const std::filesystem::path root = RT_SOURCE_DIR;
  std::vector<std::string> files = {"README.md"};
  for (const char* folder :
       {"core", "layers", "optim", "data", "dist", "apps", "configs", "tests"}) {
    for (const auto& entry : std::filesystem::recursive_directory_iterator(root / folder)) {
      files.push_back(std::filesystem::relative(entry.path(), root).string());
    }
  }
  return files;
}

void ForEachReadme(const std::function<void(const std::string&, const std::string&)>& fn) {
  int readmes = 0;
  for (const std::string& file : TreeFiles()) {
    if (!file.ends_with("README.md")) continue;
    fn(file, ReadSource(file));
    ++readmes;
  }
  EXPECT_GE(readmes, 14);
}

// Folders and files stay small enough to be read. Subfolders count separately.
TEST(SourceTreeTest, NoFolderHasMoreThanFortySources) {
  constexpr int kMostSources = 40;
  std::map<std::string, int> sources;
  for (const char* folder : {"core", "layers", "optim", "data", "dist", "apps", "tests"}) {
    ForEachSource(folder, [&](const std::string& path, const std::string&) {
      ++sources[path.substr(0, path.rfind('/'))];
    });
  }
  EXPECT_GT(sources.size(), 40U);
  for (const auto& [folder, count] : sources) EXPECT_LE(count, kMostSources) << folder;
}

TEST(SourceTreeTest, NoFileHasMoreThan400LinesWithoutAReason) {
  constexpr int64_t kMostLines = 400;
  const std::map<std::string, std::string> reasons = {
      {"tests/dist/transport/frames/peer_messages_test.cc",
       "one case per violation of the protocol"},
  };
  std::set<std::string> long_files;
  for (const char* folder : {"core", "layers", "optim", "data", "dist", "apps", "tests"}) {
    ForEachSource(folder, [&](const std::string& path, const std::string& text) {
      if (std::ranges::count(text, '\n') <= kMostLines) return;
      EXPECT_TRUE(reasons.contains(path)) << path;
      long_files.insert(path);
    });
  }
  for (const auto& [path, reason] : reasons) {
    EXPECT_TRUE(long_files.contains(path)) << path << " needs no reason any more";
  }
}

TEST(ReadmeTest, IsShort) {
  constexpr int64_t kMostLines = 130;
  EXPECT_LE(std::ranges::count(ReadSource("README.md"), '\n'), kMostLines);
}

// Every folder with a README is in the map of the code; lists of programs and verbs are complete.
TEST(ReadmeTest, LinksToEveryOther) {
  const std::string top = ReadSource("README.md");
  const std::string apps = ReadSource("apps/README.md");
  ForEachReadme([&](const std::string& readme, const std::string&) {
    if (readme == "README.md") return;
    const std::string folder = readme.substr(0, readme.rfind('/') + 1);
    const bool below_apps = folder.starts_with("apps/") && folder != "apps/";
    EXPECT_THAT(below_apps ? apps : top, HasSubstr("](" + folder.substr(below_apps ? 5 : 0)))
        << readme;
  });
}

TEST(ReadmeTest, ListsEveryVerb) {
  const std::string help = RunDogsVsCats({"--help"}).out;
  const size_t begin = help.find("Subcommands:");
  const std::string table = help.substr(begin, help.find("\nExamples") - begin);
  const std::vector<std::string> verbs = Find(table, "\n  ([a-z_]+) ");
  ASSERT_GE(verbs.size(), 8U) << help;
  const std::string top = ReadSource("README.md"), apps = ReadSource("apps/README.md");
  for (const std::string& verb : verbs) {
    EXPECT_THAT(top, HasSubstr("\n| " + verb + " | "));
    EXPECT_THAT(apps, HasSubstr("\n| `" + verb + "` | "));
  }
}

TEST(ReadmeTest, ListsEveryConfig) {
  const std::string readme = ReadSource("README.md");
  const std::string shipped = readme.substr(readme.find("\nShipped: "));
  std::vector<std::string> named = Find(shipped.substr(0, shipped.find(".\n")), "`([a-z0-9_]+)`");
  std::vector<std::string> there;
  for (const auto& entry : std::filesystem::directory_iterator(RT_SOURCE_DIR "/configs")) {
    if (entry.path().extension() == ".textproto") there.push_back(entry.path().stem().string());
  }
  EXPECT_THAT(named, testing::UnorderedElementsAreArray(there));
}

TEST(ReadmeTest, CountsTheSchemesAndTheAlgorithms) {
  const auto* kinds = CompressionScheme::descriptor()->FindOneofByName("kind");
  const int schemes = kinds->field_count() - 1;  // without `dense`, which compresses nothing
  const std::string readme = ReadSource("README.md");
  EXPECT_THAT(readme, HasSubstr("[" + std::to_string(schemes) + " schemes](dist/compression/"));
  ASSERT_EQ(AllreduceAlgorithms().size(), 7U);
  EXPECT_THAT(ReadSource("tests/compare/README.md"),
              HasSubstr("each of the seven allreduce algorithms"));
  const std::string dist = ReadSource("dist/README.md");
  for (const AllreduceAlgorithm& algorithm : AllreduceAlgorithms()) {
    EXPECT_THAT(dist, HasSubstr("\n| `" + std::string(algorithm.name) + "` | "));
  }
}

// Schemas document every field. Range and unit of a number are in a comment on its line or the line
// above.
TEST(SchemasTest, DocumentEveryNumber) {
  const std::regex number("^ *(message .*)?(optional|repeated) (int|uint|double|float).*;");
  int numbers = 0;
  for (const char* schema :
       {"layers/net.proto", "optim/optim.proto", "data/data.proto", "dist/dist.proto",
        "dist/compression/compression.proto", "dist/parameter_server/parameter_server.proto",
        "apps/run.proto", "apps/emulator/script.proto"}) {
    std::istringstream text(ReadSource(schema));
    std::string above;
    for (std::string line; std::getline(text, line); above = line) {
      if (!std::regex_search(line, number)) continue;
      ++numbers;
      EXPECT_THAT(above + line, HasSubstr("//")) << schema << ": " << line;
    }
  }
  EXPECT_GT(numbers, 80);
}

// The anchor that GitHub makes of a heading.
std::string Anchor(const std::string& heading) {
  std::string anchor;
  for (const char c : heading) {
    if (c == ' ') anchor += '-';
    if (std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '-' || c == '_') {
      anchor += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    }
  }
  return anchor;
}

TEST(ReadmeTest, EveryLinkLeadsSomewhere) {
  const std::filesystem::path root = RT_SOURCE_DIR;
  ForEachReadme([&](const std::string& readme, const std::string& text) {
    for (const std::string& link : Find(text, "\\]\\(([^) ]+)\\)")) {
      if (link.starts_with("http")) continue;
      const size_t hash = link.find('#');
      std::filesystem::path target = readme;
      if (hash != 0) target = target.parent_path() / link.substr(0, hash);
      ASSERT_TRUE(std::filesystem::exists(root / target)) << readme << ": " << link;
      if (hash == std::string::npos) continue;
      if (std::filesystem::is_directory(root / target)) target /= "README.md";
      std::set<std::string> anchors;
      for (const std::string& heading : Find(ReadSource(target.string()), "\n#+ ([^\n]+)")) {
        anchors.insert(Anchor(heading));
      }
      EXPECT_TRUE(anchors.contains(link.substr(hash + 1))) << readme << ": " << link;
    }
  });
}

TEST(ReadmeTest, EveryFileThatIsNamedIsThere) {
  const std::set<std::string> examples = {"config.textproto", "x.cc", "layouts/x.cc",
                                          "dogs_vs_cats/examine_command.cc"};
  const std::vector<std::string> files = TreeFiles();
  int named = 0;
  ForEachReadme([&](const std::string& readme, const std::string& text) {
    for (const std::string& name :
         Find(text,
              "[^A-Za-z0-9_./>-]([A-Za-z][A-Za-z0-9_./-]*"
              "\\.(h|cc|proto|py|sh|textproto|sbatch|yaml))[^A-Za-z0-9]")) {
      if (examples.contains(name)) continue;
      ++named;
      EXPECT_TRUE(
          std::any_of(files.begin(), files.end(),
                      [&](const std::string& file) { return ("/" + file).ends_with("/" + name); }))
          << readme << ": " << name;
    }
  });
  EXPECT_GT(named, 200);
}

}  // namespace
}  // namespace ringtail
