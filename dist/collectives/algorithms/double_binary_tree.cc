#include "dist/collectives/algorithms/double_binary_tree.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <vector>

#include "core/check.h"

namespace ringtail {
namespace {

constexpr int kTrees = 2;
constexpr int kUncoloured = -1;

// From a rank to its parent in one of the trees. In the distribution, messages go the other way.
struct Link {
  int tree, child, parent;
  int colour = kUncoloured;
  int first_slot = 0;  // of segment 0
};

// The tree of places 0 .. world - 1 (see the drawing): odd places are leaves, a place whose lowest
// set bit is 2^k is k links above them, and place 0 is the root. A parent's lowest bit is the next
// higher one; places beyond the world are skipped on the way up.
int ParentPlace(int place, int world) {
  const int lowest_bit = place & -place;
  const int parent = (place ^ lowest_bit) | (lowest_bit << 1);
  return parent < world ? parent : place ^ lowest_bit;
}

int RankAt(int tree, int place, int world) {
  if (tree == 0) return place;
  return world % 2 == 0 ? world - 1 - place : (place + 1) % world;
}

// All links of both trees; in each tree those nearer to the leaves first.
std::vector<Link> TreeLinks(int world) {
  std::vector<Link> links;
  for (int tree = 0; tree < kTrees; ++tree) {
    for (int bit = 1; bit < world; bit *= 2) {
      for (int place = bit; place < world; place += 2 * bit) {
        links.push_back({.tree = tree,
                         .child = RankAt(tree, place, world),
                         .parent = RankAt(tree, ParentPlace(place, world), world)});
      }
    }
  }
  return links;
}

// For each link, by index, the links that must have the other colour: at most one at either end.
std::vector<std::vector<size_t>> Rivals(const std::vector<Link>& links, int world) {
  constexpr size_t kNone = SIZE_MAX;
  std::vector<size_t> into(static_cast<size_t>(world), kNone), out_of = into;
  std::vector<std::vector<size_t>> rivals(links.size());
  const auto meet = [&rivals](size_t* other, size_t link) {
    if (*other != kNone) {
      rivals[link].push_back(*other);
      rivals[*other].push_back(link);
    }
    *other = link;
  };
  for (size_t i = 0; i < links.size(); ++i) {
    meet(&into[static_cast<size_t>(links[i].parent)], i);
    meet(&out_of[static_cast<size_t>(links[i].child)], i);
  }
  return rivals;
}

void Colour(std::vector<Link>* links, int world) {
  const std::vector<std::vector<size_t>> rivals = Rivals(*links, world);
  for (size_t start = 0; start < links->size(); ++start) {
    if ((*links)[start].colour != kUncoloured) continue;
    (*links)[start].colour = 0;
    std::vector<size_t> walk = {start};
    while (!walk.empty()) {
      const size_t link = walk.back();
      walk.pop_back();
      for (const size_t rival : rivals[link]) {
        if ((*links)[rival].colour != kUncoloured) continue;
        (*links)[rival].colour = 1 - (*links)[link].colour;
        walk.push_back(rival);
      }
    }
  }
}

// Links are ordered so that those into a child come before the one out of it.
void SetFirstSlots(std::vector<Link>* links, int world) {
  std::vector<int> ready[kTrees];  // the slot from which a rank has all of a segment
  for (auto& slots : ready) slots.resize(static_cast<size_t>(world));
  for (Link& link : *links) {
    const int earliest = ready[link.tree][static_cast<size_t>(link.child)];
    link.first_slot = earliest + (earliest + link.colour) % 2;
    int& parent_ready = ready[link.tree][static_cast<size_t>(link.parent)];
    parent_ready = std::max(parent_ready, link.first_slot + 1);
  }
}

Plan Reduce(int rank, const std::vector<Link>& links, int64_t count, int64_t segment_elements) {
  std::map<int64_t, Round> timetable;  // by slot
  for (const Link& link : links) {
    if (link.child != rank && link.parent != rank) continue;
    const ElementRange half = EvenPart(count, kTrees, link.tree);
    const int64_t segments = (half.count + segment_elements - 1) / segment_elements;
    for (int64_t j = 0; j < segments; ++j) {
      ElementRange range = EvenPart(half.count, segments, j);
      range.offset += half.offset;
      timetable[link.first_slot + 2 * j].steps.push_back(
          link.child == rank ? Step::Send(link.parent, range)
                             : Step::ReceiveReduce(link.child, range));
    }
  }
  Plan plan;
  for (auto& [slot, round] : timetable) plan.rounds.push_back(std::move(round));
  return plan;
}

}  // namespace

Plan DoubleBinaryTreeAllreduce(int rank, int world, int64_t count, int64_t segment_elements) {
  CheckPlanArguments(rank, world, count);
  RT_CHECK(segment_elements > 0, "a segment must have elements");
  std::vector<Link> links = TreeLinks(world);
  Colour(&links, world);
  SetFirstSlots(&links, world);
  Plan plan = Reduce(rank, links, count, segment_elements);
  plan.Append(Backwards(plan));
  return plan;
}

}  // namespace ringtail
