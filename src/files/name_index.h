// Finds the items of a list by name: the order of their names beside the list, 8 bytes an item. The
// list must not change while the index is used.
#pragma once

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <span>
#include <string_view>
#include <vector>

namespace millrace {

template <class Item, std::string_view Item::*kName>
class NameIndex {
 public:
  NameIndex() = default;
  explicit NameIndex(std::span<const Item> items) : order_(items.size()) {
    std::iota(order_.begin(), order_.end(), size_t{0});
    std::stable_sort(order_.begin(), order_.end(),
                     [&](size_t a, size_t b) { return items[a].*kName < items[b].*kName; });
  }

  const Item* find(std::span<const Item> items, std::string_view name) const {
    const auto at =
        std::lower_bound(order_.begin(), order_.end(), name,
                         [&](size_t i, std::string_view n) { return items[i].*kName < n; });
    return at != order_.end() && items[*at].*kName == name ? &items[*at] : nullptr;
  }

  // The later of two items that have one name; null when all names differ.
  const Item* duplicate(std::span<const Item> items) const {
    const auto at = std::adjacent_find(order_.begin(), order_.end(), [&](size_t a, size_t b) {
      return items[a].*kName == items[b].*kName;
    });
    return at == order_.end() ? nullptr : &items[*(at + 1)];
  }

 private:
  std::vector<size_t> order_;
};

}  // namespace millrace
