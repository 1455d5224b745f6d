#include "engine/kv_tier.h"

#include <algorithm>
#include <utility>

#include "base/clock.h"

namespace millrace {
namespace {

// Copied in one step at most: 16 pages of SmolLM2 are 23 MB, which take 3 ms.
constexpr int kPagesAtOnce = 16;
// And looked at, most of which are on disk already: 0.2 us each.
constexpr int kLooksAtOnce = 4096;
// Fewer tokens are computed sooner than they are read.
constexpr int64_t kLeastGain = 4;

int64_t n_pages_of(int64_t n_tokens) {
  return (n_tokens + kPageTokens - 1) / kPageTokens;
}

uint32_t bit(size_t group) {
  return uint32_t{1} << group;
}

}  // namespace

static_assert(kPageTokens == disk::kPageIds);

// What memory and disk have of a prompt, page by page.
struct KvTier::Plan {
  struct Page {
    Hash128 prefix = {};
    uint32_t on_disk = 0;  // groups
  };
  PrefixTree::Found memory;
  std::vector<Page> whole;      // pages that one of them has in full
  int64_t n_end = 0;            // tokens of the page after those
  bool end_is_on_disk = false;  // else in memory
  disk::Store::Found end = {};

  bool is_in_memory(size_t group, int64_t page) const {
    const auto& pages = memory.pages[group];
    return page < std::ssize(pages) && pages[static_cast<size_t>(page)] >= 0 &&
           (page + 1) * kPageTokens <= memory.n + (is_memory_end(page) ? kPageTokens : 0);
  }
  // The page in which what memory has ends.
  bool is_memory_end(int64_t page) const {
    return page == std::ssize(whole) && n_end > 0 && !end_is_on_disk;
  }
  uint32_t on_disk(int64_t page) const {
    if (page < std::ssize(whole)) return whole[static_cast<size_t>(page)].on_disk;
    return end_is_on_disk ? end.groups : 0;
  }
};

struct KvTier::Restore {
  struct Page {
    Hash128 prefix = {};
    uint32_t groups = 0;  // to be read
    int64_t n_tokens = kPageTokens;
    disk::Tier::ReadSlot* slot = nullptr;  // once it was read
  };
  Id id = 0;
  std::string salt;
  Use use;
  std::vector<int32_t> tokens;  // up to the end of the last page's record
  size_t first_page = 0;
  std::vector<Page> pages;  // from the first on that is not all in memory
  size_t n_asked = 0, n_put = 0;
  std::vector<std::pair<size_t, int32_t>> held;  // group, page
  bool is_over = false;
  int64_t began_ns = 0, moved_ns = 0;
};

KvTier::KvTier(std::unique_ptr<disk::Tier> disk, const disk::Root& root, PrefixTree& tree,
               std::vector<KvPages>& pools, Device& device, const KvTierOptions& options)
    : disk_(std::move(disk)),
      root_(root),
      tree_(tree),
      pools_(pools),
      device_(device),
      options_(options),
      pages_(pools.size()) {
  size_t most = 0;
  for (const KvPages& pool : pools) most = std::max(most, pool.page_bytes());
  scratch_.resize(most);
  PrefixTree::Below below{
      .first_hash =
          [root](std::string_view salt) { return disk::first_hash(root, disk::salt_of(salt)); },
      .next_hash = disk::next_hash,
      .is_on_disk = [this](const Hash128& prefix,
                           uint32_t groups) { return disk_->store().has(prefix, groups); }};
  if (disk_->store().is_by_worth())
    below.move_down = [this](const PrefixTree::Unsaved& unsaved) {
      return hand_over(unsaved) != Handed::refused;
    };
  tree.save_with(std::move(below));
}

KvTier::~KvTier() {
  for (Restore& restore : restores_) release(restore);
}

void KvTier::fill(disk::Tier::WriteSlot& slot, const PrefixTree::Unsaved& unsaved,
                  uint32_t groups) {
  disk::Entry& entry = slot.record.entry;
  const int64_t n = std::ssize(unsaved.tokens);
  entry = {};
  slot.record.uses = unsaved.uses;
  entry.n_tokens = static_cast<uint32_t>(n);
  entry.salt = disk::salt_of(unsaved.salt);
  entry.before = unsaved.before;
  entry.prefix = unsaved.prefix;
  std::copy(unsaved.tokens.begin(), unsaved.tokens.end(), entry.tokens.begin());
  std::byte* to = slot.record.payload;
  for (size_t group = 0; group < pools_.size(); ++group) {
    if ((groups & bit(group)) == 0) continue;
    const KvPages& pool = pools_[group];
    const std::byte* page = pool.page(unsaved.pages[group]);
    const bool is_whole = n == kPageTokens;
    // A device that cannot be read is lost; the record goes without this part.
    if (!device_.read(is_whole ? to : scratch_.data(), page, pool.page_bytes()).ok()) continue;
    if (!is_whole) pool.pack(scratch_.data(), n, to);
    entry.parts[group].bytes = pool.packed_bytes(n);
    to += entry.parts[group].bytes;
  }
}

KvTier::Handed KvTier::hand_over(const PrefixTree::Unsaved& unsaved) {
  uint32_t groups = 0;
  uint64_t bytes = 0;
  for (size_t group = 0; group < pools_.size(); ++group) {
    if (unsaved.pages[group] < 0) continue;
    groups |= bit(group);
    bytes += pools_[group].packed_bytes(std::ssize(unsaved.tokens));
  }
  if (groups == 0 || disk_->store().has(unsaved.prefix, groups)) return Handed::was_there;
  disk::Tier::WriteSlot* slot = disk_->to_fill(bytes);
  if (slot == nullptr) return Handed::refused;
  fill(*slot, unsaved, groups);
  disk_->write(slot);
  return Handed::taken;
}

// Returns how many records were handed over.
int KvTier::write_behind() {
  if (const uint64_t n_lost = disk_->n_lost(); n_lost != std::exchange(n_lost_, n_lost))
    tree_.doubt_saved();
  const int64_t ends_before = now_ns() - static_cast<int64_t>(options_.ends_wait_s * 1e9);
  int n_handed = 0;
  for (int n_seen = 0; n_handed < kPagesAtOnce && n_seen < kLooksAtOnce; ++n_seen) {
    const auto unsaved = tree_.next_unsaved(ends_before);
    if (!unsaved) break;
    const Handed handed = hand_over(*unsaved);
    if (handed == Handed::refused) break;
    n_handed += handed == Handed::taken;
    tree_.saved();
  }
  return n_handed;
}

void KvTier::pump() {
  write_behind();
  collect();
  const auto patience_ns = static_cast<int64_t>(options_.patience_s * 1e9);
  for (Restore& restore : restores_) {
    if (restore.is_over) continue;
    ask(restore);
    put(restore);
    if (restore.is_over || now_ns() - restore.moved_ns <= patience_ns) continue;
    end(restore, false);
    rests_until_ns_ = now_ns() + static_cast<int64_t>(options_.rest_s * 1e9);
  }
}

bool KvTier::is_busy() const {
  return tree_.n_unsaved() > 0 || disk_->is_writing() || disk_->n_lost() != n_lost_ ||
         is_restoring();
}

bool KvTier::flush(double seconds) {
  const int64_t start_ns = now_ns();
  const int64_t until_ns = start_ns + static_cast<int64_t>(seconds * 1e9);
  const int64_t ends_ns = start_ns + static_cast<int64_t>(options_.ends_wait_s * 1e9);
  for (;;) {
    const int64_t n_before = tree_.n_unsaved();
    const bool is_writing = disk_->is_writing();  // if not, what was lost is known
    const bool hands_over = write_behind() > 0;
    if (tree_.n_unsaved() == 0 && !is_writing && !hands_over) return true;
    const int64_t now = now_ns(), off_until_ns = disk_->off_until_ns();
    if (now >= until_ns) return false;
    // Nothing is on its way and nothing is taken: writing is off, or the day's budget is spent.
    const bool is_refused = !is_writing && !hands_over && now > ends_ns;
    if (is_refused && (off_until_ns < now || off_until_ns >= until_ns)) return false;
    if (tree_.n_unsaved() == n_before) disk_->wait(std::min(until_ns, now_ns() + 20'000'000));
  }
}

// ---- from disk to memory

KvTier::Plan KvTier::plan(std::string_view salt, std::span<const int32_t> tokens, const Use& use) {
  Plan out;
  out.memory = tree_.resident(salt, tokens);
  Hash128 before = disk::first_hash(root_, disk::salt_of(salt));
  for (int64_t page = 0; page * kPageTokens < std::ssize(tokens); ++page) {
    const auto rest = tokens.subspan(static_cast<size_t>(page * kPageTokens));
    const auto found = disk_->store().find(before, rest, use);
    const bool is_on_disk = found && found->n_common == kPageTokens;
    if (!is_on_disk && (page + 1) * kPageTokens > out.memory.n) {
      const int64_t n_memory = std::max<int64_t>(out.memory.n - page * kPageTokens, 0);
      out.end_is_on_disk = found && found->n_common > n_memory;
      if (out.end_is_on_disk) out.end = *found;
      out.n_end = out.end_is_on_disk ? found->n_common : n_memory;
      break;
    }
    const auto own = rest.first(static_cast<size_t>(kPageTokens));
    before = disk::next_hash(before, own);
    out.whole.push_back({before, is_on_disk ? found->groups : 0});
  }
  return out;
}

// The most tokens from which every layer can go on with what one of them has.
int64_t KvTier::best_end(const Plan& plan) const {
  const auto is_enough = [&](int64_t n) {
    for (size_t group = 0; group < pools_.size(); ++group)
      for (int64_t page = first_seen_page(n, pools_[group].group().window); page < n_pages_of(n);
           ++page)
        if (!plan.is_in_memory(group, page) && (plan.on_disk(page) & bit(group)) == 0) return false;
    return true;
  };
  int64_t n = std::ssize(plan.whole) * kPageTokens + plan.n_end;
  while (n > 0 && !is_enough(n)) n = (n - 1) / kPageTokens * kPageTokens;
  return n;
}

// What is in memory stays there, the rest is to be read.
void KvTier::hold(const Plan& plan, int64_t n, Restore& restore) {
  for (int64_t page = 0; page < n_pages_of(n); ++page) {
    Restore::Page wanted;
    bool is_in_tree = (page + 1) * kPageTokens <= plan.memory.n || plan.is_memory_end(page);
    for (size_t group = 0; group < pools_.size(); ++group) {
      if (page < first_seen_page(n, pools_[group].group().window)) continue;
      if (!plan.is_in_memory(group, page)) {
        wanted.groups |= bit(group);
        continue;
      }
      const int32_t id = plan.memory.pages[group][static_cast<size_t>(page)];
      pools_[group].retain(id);
      restore.held.emplace_back(group, id);
    }
    const bool is_end = page == std::ssize(plan.whole);
    if (is_end && !plan.end_is_on_disk) break;
    wanted.prefix = is_end ? plan.end.prefix : plan.whole[static_cast<size_t>(page)].prefix;
    if (is_end) wanted.n_tokens = plan.end.n_tokens;
    if (restore.pages.empty() && wanted.groups == 0 && is_in_tree) continue;
    if (restore.pages.empty()) restore.first_page = static_cast<size_t>(page);
    restore.pages.push_back(wanted);
  }
}

// Pages after the last that one of them has which were in memory once.
void KvTier::count_regret(const Plan& plan, std::string_view salt,
                          std::span<const int32_t> tokens) {
  Hash128 before =
      plan.whole.empty() ? disk::first_hash(root_, disk::salt_of(salt)) : plan.whole.back().prefix;
  for (auto rest = tokens.subspan(plan.whole.size() * static_cast<size_t>(kPageTokens));
       std::ssize(rest) >= kPageTokens; rest = rest.subspan(static_cast<size_t>(kPageTokens))) {
    before = disk::next_hash(before, rest.first(static_cast<size_t>(kPageTokens)));
    if (!tree_.was_given_up(before)) return;
    counts_.n_regret += kPageTokens;
  }
}

KvTier::Id KvTier::restore(std::string_view salt, std::span<const int32_t> tokens, bool again,
                           const Use& use) {
  if (now_ns() < rests_until_ns_) return 0;
  const Plan made = plan(salt, tokens, use);
  const int64_t n_memory = tree_.count(salt, tokens);
  const int64_t n = best_end(made);
  if (!again) count_regret(made, salt, tokens);
  if (n < n_memory + kLeastGain) return 0;
  Restore& restore = restores_.emplace_back();
  restore.id = ++last_id_;
  restore.salt = salt;
  restore.use = use;
  restore.began_ns = restore.moved_ns = now_ns();
  hold(made, n, restore);
  const int64_t n_whole = std::min<int64_t>(std::ssize(made.whole), n_pages_of(n)) * kPageTokens;
  restore.tokens.assign(tokens.begin(), tokens.begin() + n_whole);
  if (n > n_whole && made.end_is_on_disk)
    restore.tokens.insert(restore.tokens.end(), made.end.tokens.begin(),
                          made.end.tokens.begin() + made.end.n_tokens);
  ++counts_.n_restores;
  ask(restore);
  return restore.id;
}

void KvTier::ask(Restore& restore) {
  for (; restore.n_asked < restore.pages.size(); ++restore.n_asked) {
    const Restore::Page& page = restore.pages[restore.n_asked];
    if (page.groups == 0) continue;
    disk::Tier::ReadSlot* slot = disk_->to_read();
    if (slot == nullptr) return;
    slot->restore = restore.id;
    slot->page = restore.n_asked;
    slot->record = {.prefix = page.prefix};
    std::byte* to = slot->data;
    for (size_t group = 0; group < pools_.size(); ++group) {
      if ((page.groups & bit(group)) == 0) continue;
      slot->record.to[group] = to;
      slot->record.bytes[group] = pools_[group].packed_bytes(page.n_tokens);
      to += slot->record.bytes[group];
    }
    disk_->read(slot);
  }
}

// Slots of restores that were forgotten go back unread.
void KvTier::collect() {
  while (disk::Tier::ReadSlot* slot = disk_->take_read()) {
    const auto it = std::find_if(restores_.begin(), restores_.end(), [&](const Restore& r) {
      return r.id == slot->restore && !r.is_over;
    });
    if (it == restores_.end())
      disk_->give_back(slot);
    else
      it->pages[slot->page].slot = slot;
  }
}

bool KvTier::put_page(Restore& restore, size_t i) {
  Restore::Page& page = restore.pages[i];
  if (page.groups == 0) return true;
  const disk::Store::Reading& record = page.slot->record;
  if (!record.is_good) return false;
  for (size_t group = 0; group < pools_.size(); ++group) {
    if (record.to[group] == nullptr) continue;
    const auto id = tree_.take_page(group);
    if (!id.ok()) return false;
    KvPages& pool = pools_[group];
    pages_[group][restore.first_page + i] = id.value();
    const std::byte* from = record.to[group];
    if (page.n_tokens < kPageTokens) {
      pool.unpack(from, page.n_tokens, scratch_.data());
      from = scratch_.data();
    } else {
      pool.seal(id.value());
    }
    if (!device_.upload(pool.page(id.value()), from, pool.page_bytes()).ok()) return false;
  }
  disk_->give_back(std::exchange(page.slot, nullptr));
  return true;
}

// Pages go into the tree in order, as many at once as there are.
void KvTier::put(Restore& restore) {
  const size_t first = restore.n_put;
  bool is_good = true;
  for (auto& pages : pages_) pages.assign(restore.first_page + restore.pages.size(), -1);
  while (is_good && restore.n_put < restore.n_asked) {
    const Restore::Page& page = restore.pages[restore.n_put];
    if (page.groups != 0 && page.slot == nullptr) break;
    // Its page may be another's, which has to go down first.
    if (disk_->store().is_by_worth() && disk_->is_full()) break;
    is_good = put_page(restore, restore.n_put);
    restore.n_put += is_good;
  }
  if (!is_good) {  // what was taken for the page that failed
    const size_t at = restore.first_page + restore.n_put;
    for (size_t group = 0; group < pools_.size(); ++group)
      if (pages_[group][at] >= 0) pools_[group].release(std::exchange(pages_[group][at], -1));
  }
  if (restore.n_put > first) {
    const bool is_last = restore.n_put == restore.pages.size();
    const size_t n_tokens = std::min(restore.tokens.size(), (restore.first_page + restore.n_put) *
                                                                static_cast<size_t>(kPageTokens));
    // What comes from there need not be written, and what is before it perhaps must not.
    constexpr bool kPersists = false;
    const auto put = std::span(restore.tokens).first(n_tokens);
    tree_.insert(restore.salt, put, pages_, is_last, kPersists, restore.use);
    tree_.came_from_disk(restore.salt, put, restore.first_page + first);
    for (size_t group = 0; group < pools_.size(); ++group)
      for (const int32_t id : pages_[group])
        if (id >= 0) restore.held.emplace_back(group, id);
    counts_.n_tokens += static_cast<int64_t>(n_tokens - (restore.first_page + first) *
                                                            static_cast<size_t>(kPageTokens));
    restore.moved_ns = now_ns();
  }
  if (!is_good || restore.n_put == restore.pages.size()) end(restore, is_good);
}

void KvTier::end(Restore& restore, bool is_whole) {
  restore.is_over = true;
  counts_.n_failed += !is_whole;
  counts_.seconds += static_cast<double>(now_ns() - restore.began_ns) * 1e-9;
  for (Restore::Page& page : restore.pages)
    if (page.slot != nullptr) disk_->give_back(std::exchange(page.slot, nullptr));
}

void KvTier::release(Restore& restore) {
  if (!restore.is_over) end(restore, false);
  for (const auto& [group, id] : restore.held) pools_[group].release(id);
  restore.held.clear();
}

const KvTier::Restore* KvTier::find(Id id) const {
  const auto it = std::find_if(restores_.begin(), restores_.end(),
                               [&](const Restore& restore) { return restore.id == id; });
  return it == restores_.end() ? nullptr : &*it;
}

bool KvTier::is_over(Id id) const {
  const Restore* restore = find(id);
  return restore == nullptr || restore->is_over;
}

void KvTier::forget(Id id) {
  for (auto it = restores_.begin(); it != restores_.end(); ++it)
    if (it->id == id) {
      release(*it);
      restores_.erase(it);
      return;
    }
}

bool KvTier::is_restoring() const {
  return std::any_of(restores_.begin(), restores_.end(),
                     [](const Restore& restore) { return !restore.is_over; });
}

int64_t KvTier::n_to_take(Id id, size_t group) const {
  const Restore* restore = find(id);
  if (restore == nullptr || restore->is_over) return 0;
  return std::count_if(restore->pages.begin() + static_cast<int64_t>(restore->n_put),
                       restore->pages.end(),
                       [&](const Restore::Page& page) { return (page.groups & bit(group)) != 0; });
}

void KvTier::wait(double seconds) {
  disk_->wait(now_ns() + static_cast<int64_t>(seconds * 1e9));
}

}  // namespace millrace
