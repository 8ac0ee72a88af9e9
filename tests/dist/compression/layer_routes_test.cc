#include "dist/compression/layer_routes.h"

#include <gtest/gtest.h>

#include "dist/compression/schemes.h"

namespace ringtail {
namespace {

LayerScheme SchemeNamed(const char* preset) {
  return MakeLayerScheme(*FindPreset(preset), {.rows = 100, .columns = 100});
}

TEST(LayerRoutes, LettersAreThoseOfOlderCheckpoints) {
  constexpr std::pair<LayerRoute, char> kLetters[] = {{LayerRoute::kDense, 'd'},
                                                      {LayerRoute::kGathered, 'g'},
                                                      {LayerRoute::kSharded, 's'},
                                                      {LayerRoute::kSketched, 'k'}};
  for (const auto& [route, letter] : kLetters) {
    EXPECT_EQ(LetterOf(route), letter);
    EXPECT_EQ(RouteOf(letter), route);
  }
}

TEST(LayerRoutes, TextIsReadAgain) {
  const std::string text = RoutesText({.world = 4, .letters = "ddgsk"});
  EXPECT_EQ(text, "4:ddgsk");
  const auto routes = ParseRoutes(text);
  ASSERT_TRUE(routes.ok());
  EXPECT_EQ(routes->world, 4);
  EXPECT_EQ(routes->letters, "ddgsk");
  EXPECT_EQ(routes->frozen, "");
  const auto thaws = ParseRoutes(RoutesText({.world = 4, .letters = "ddg", .frozen = "sk"}));
  ASSERT_TRUE(thaws.ok());
  EXPECT_EQ(thaws->letters, "ddg");
  EXPECT_EQ(thaws->frozen, "sk");
  for (const char* damaged : {"", "4", ":dd", "4x:dd", "x:dd", "99999999999:d"}) {
    EXPECT_EQ(ParseRoutes(damaged).status().code(), StatusCode::kDataLoss) << damaged;
  }
}

TEST(LayerRoutes, MustSuitTheirSchemes) {
  std::vector<LayerScheme> schemes;
  schemes.push_back(LayerScheme());  // dense
  schemes.push_back(SchemeNamed("one_bit"));
  schemes.push_back(SchemeNamed("important_filters"));
  schemes.push_back(SchemeNamed("power_sgd"));
  for (const char* fits : {"dddd", "dgdd", "dsdd", "ddgd", "dddk", "dsgk"}) {
    EXPECT_TRUE(CheckRoutes(fits, schemes).ok()) << fits;
  }
  for (const char* unfit : {"", "ddd", "ddddd", "gddd", "dkdd", "ddsd", "dddg", "ddd?"}) {
    EXPECT_EQ(CheckRoutes(unfit, schemes).code(), StatusCode::kDataLoss) << unfit;
  }
}

}  // namespace
}  // namespace ringtail
