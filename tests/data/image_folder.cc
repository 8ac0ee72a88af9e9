#include "tests/data/image_folder.h"

#include <filesystem>
#include <fstream>

#include "core/check.h"

namespace ringtail {
namespace {

StatusOr<std::unique_ptr<Dataset>> Open(const std::string& path, DataConfig::Layout layout) {
  DataConfig config;
  config.set_path(path);
  config.set_layout(layout);
  return Dataset::Open(config);
}

}  // namespace

void PutFile(const std::string& path, std::string_view content) {
  std::filesystem::create_directories(std::filesystem::path(path).parent_path());
  std::ofstream file(path, std::ios::binary);
  file << content;
  file.close();
  RT_CHECK(file.good(), "cannot write " + path);
}

std::unique_ptr<Dataset> OpenOrDie(const std::string& path, DataConfig::Layout layout) {
  auto dataset = Open(path, layout);
  RT_CHECK(dataset.ok(), dataset.status().ToString());
  return *std::move(dataset);
}

Status OpenError(const std::string& path, DataConfig::Layout layout) {
  auto dataset = Open(path, layout);
  RT_CHECK(!dataset.ok(), "Open should have failed, but found " + (*dataset)->Describe());
  return dataset.status();
}

std::vector<std::string> Keys(const Dataset& dataset) {
  std::vector<std::string> keys;
  for (const Sample& sample : dataset.samples()) keys.push_back(sample.key);
  return keys;
}

std::string KeysAndLabels(const Dataset& dataset) {
  std::string text;
  for (const Sample& sample : dataset.samples()) {
    text += (text.empty() ? "" : " ") + sample.key + "=" + std::to_string(sample.label);
  }
  return text;
}

std::string ReadText(const Dataset& dataset, int64_t i) {
  const auto bytes = dataset.Read(i);
  RT_CHECK(bytes.ok(), bytes.status().ToString());
  return {reinterpret_cast<const char*>(bytes->data()), bytes->size()};
}

}  // namespace ringtail
