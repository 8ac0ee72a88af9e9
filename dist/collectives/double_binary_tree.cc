#include "dist/collectives/double_binary_tree.h"

#include <algorithm>
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

// All links of both trees, in each tree those of lower ranks in the tree first.
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

// The links that must not have the colour of the key: at most one at either end.
std::vector<std::vector<Link*>> Rivals(std::vector<Link>& links, int world) {
  std::vector<Link*> into(static_cast<size_t>(world)), out_of(static_cast<size_t>(world));
  std::vector<std::vector<Link*>> rivals(links.size());
  const auto meet = [&](std::vector<Link*>& last_at, int rank, Link* link) {
    Link*& other = last_at[static_cast<size_t>(rank)];
    if (other != nullptr) {
      rivals[static_cast<size_t>(link - links.data())].push_back(other);
      rivals[static_cast<size_t>(other - links.data())].push_back(link);
    }
    other = link;
  };
  for (Link& link : links) {
    meet(into, link.parent, &link);
    meet(out_of, link.child, &link);
  }
  return rivals;
}

void Colour(std::vector<Link>* links, int world) {
  const std::vector<std::vector<Link*>> rivals = Rivals(*links, world);
  for (Link& start : *links) {
    if (start.colour != kUncoloured) continue;
    start.colour = 0;
    std::vector<Link*> walk = {&start};
    while (!walk.empty()) {
      const Link* link = walk.back();
      walk.pop_back();
      for (Link* rival : rivals[static_cast<size_t>(link - links->data())]) {
        if (rival->colour == kUncoloured) {
          rival->colour = 1 - link->colour;
          walk.push_back(rival);
        }
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
