// What a full store gives up where values are known: the record worth least, from the ends of
// contexts, byte for byte.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "base/philox.h"
#include "engine/disk/faulty_files_test.h"
#include "engine/disk/store.h"
#include "engine/disk/temporary_folder_test.h"

namespace millrace::disk {
namespace {

constexpr size_t kPayload = 64 << 10;
constexpr uint64_t kRecord = kPayload + kEntryBytes;
const Root kRoot = root_of("a model");

class StoreByWorth : public testing::Test {
 protected:
  double now_s_ = 100;
  Retention retention_{KvPolicy::value, [this] { return now_s_; }};
  const TemporaryFolder folder_;
  Folder held_;
  FaultyFiles* faults_ = nullptr;
  std::unique_ptr<Store> store_;

  void open(uint64_t n_records) {
    store_.reset();
    held_ = {};
    held_ = open_folder(folder_.path(), "model").value();
    auto faulty = std::make_unique<FaultyFiles>(std::move(held_.files), 1, 0);
    faults_ = faulty.get();
    held_.files = std::move(faulty);
    store_ = Store::open(*held_.files, {.root = kRoot,
                                        .max_bytes = n_records * kRecord + 4096,
                                        .max_records = 10000,
                                        .segment_bytes = 4 * kRecord,
                                        .retention = &retention_})
                 .value();
  }

  // A context of one line: where its pages end, and whose it is.
  struct Context {
    int32_t number = 0;
    Use use = {};
    std::vector<Hash128> pages = {};
  };
  static std::vector<int32_t> tokens(int32_t context, size_t page) {
    std::vector<int32_t> out(kPageIds, context);
    out[1] = static_cast<int32_t>(page);
    return out;
  }
  static Hash128 start() { return first_hash(kRoot, salt_of("")); }
  static std::vector<std::byte> payload(const Hash128& of) {
    return std::vector<std::byte>(kPayload, static_cast<std::byte>(of.low));
  }

  Status write(Context& context) {
    const auto ids = tokens(context.number, context.pages.size());
    Store::Writing record;
    record.entry.n_tokens = kPageIds;
    record.entry.before = context.pages.empty() ? start() : context.pages.back();
    record.entry.prefix = next_hash(record.entry.before, ids);
    record.entry.parts[0].bytes = kPayload;
    std::copy(ids.begin(), ids.end(), record.entry.tokens.begin());
    std::vector<std::byte> bytes = payload(record.entry.prefix);
    record.payload = bytes.data();
    record.uses.add(context.use);
    context.pages.push_back(record.entry.prefix);
    Store::Writing* one = &record;
    return store_->write({&one, 1});
  }
  Context context(int32_t number, int n_pages) {
    Context out{.number = number};
    const auto first = tokens(number, 0);
    out.use = retention_.arrived({.session = std::to_string(number), .prompt = first});
    for (int i = 0; i < n_pages; ++i) EXPECT_TRUE(write(out).ok());
    return out;
  }
  int64_t n_kept(const Context& context) const {
    int64_t n = 0;
    while (n < std::ssize(context.pages) && store_->has(context.pages[static_cast<size_t>(n)], 1))
      ++n;
    for (size_t i = static_cast<size_t>(n); i < context.pages.size(); ++i)
      EXPECT_FALSE(store_->has(context.pages[i], 1)) << "a page without those before it";
    return n;
  }
  bool reads(const Hash128& prefix) {
    std::vector<std::byte> got(kPayload);
    Store::Reading record{.prefix = prefix};
    record.to[0] = got.data();
    record.bytes[0] = kPayload;
    Store::Reading* one = &record;
    store_->read({&one, 1});
    EXPECT_TRUE(!record.is_good || got == payload(prefix));
    return record.is_good;
  }
};

TEST_F(StoreByWorth, gives_up_the_ends_of_what_is_worth_least) {
  open(12);
  Context left = context(1, 5), awaited = context(2, 5);
  retention_.ended(left.use, TurnEnd::end);
  retention_.ended(awaited.use, TurnEnd::end, "a_tool");
  const Context next = context(3, 5);
  EXPECT_EQ(n_kept(left), 2);
  EXPECT_EQ(n_kept(awaited), 5);
  EXPECT_EQ(n_kept(next), 5);
  EXPECT_EQ(store_->counts().n_dropped, 3u);
  for (const Hash128& page : awaited.pages) EXPECT_TRUE(reads(page));
}

// Whatever was given back in the middle of files: the size holds, and the rest is there at the next
// start.
TEST_F(StoreByWorth, the_size_is_a_limit_and_a_restart_finds_the_rest) {
  open(20);
  std::vector<Context> all;
  for (int i = 0; i < 12; ++i) {
    all.push_back(context(i, 3 + i % 4));
    retention_.ended(all.back().use, TurnEnd::end, i % 3 == 0 ? "slow" : "");
    now_s_ += 5;
    uint64_t bytes = 0;
    const auto listed = held_.files->list().value();
    for (const Files::Listed& file : listed) bytes += file.disk_bytes;
    EXPECT_LE(bytes, 20 * kRecord + 4096 + 8192);  // the ends of blocks
    EXPECT_LE(store_->counts().bytes, 20 * kRecord + 4096);
  }
  std::vector<int64_t> kept;
  for (const Context& one : all) kept.push_back(n_kept(one));
  const uint64_t n_records = store_->counts().n_records;
  open(20);
  EXPECT_EQ(store_->counts().n_records, n_records);
  EXPECT_EQ(store_->counts().n_damaged, 0u);
  for (size_t i = 0; i < all.size(); ++i) {
    EXPECT_EQ(n_kept(all[i]), kept[i]);
    for (int64_t page = 0; page < kept[i]; ++page)
      EXPECT_TRUE(reads(all[i].pages[static_cast<size_t>(page)]));
  }
}

// Files in which nothing can be found take room for nothing, and take no time without end.
TEST_F(StoreByWorth, what_cannot_be_found_goes_before_what_can) {
  open(8);
  Context kept = context(1, 3);
  retention_.ended(kept.use, TurnEnd::end);
  store_.reset();
  const std::string folder = folder_.path() + "/model/";
  std::ofstream(folder + "00000077.kv") << std::string(4 * kRecord, 'x');
  std::ofstream(folder + "00000078.ids") << "x";
  std::filesystem::resize_file(folder + "00000078.ids", uint64_t{1} << 40);
  open(8);
  EXPECT_EQ(n_kept(kept), 3);
  const Context next = context(2, 5);
  EXPECT_EQ(n_kept(kept), 3);
  EXPECT_EQ(n_kept(next), 5);
  EXPECT_FALSE(std::filesystem::exists(folder + "00000077.kv"));
}

// A part that cannot be given back for another reason: its segment goes, and the next is cut again.
TEST_F(StoreByWorth, trouble_with_one_segment_costs_that_segment) {
  open(12);
  Context left = context(1, 4), awaited = context(2, 8);
  retention_.ended(left.use, TurnEnd::end);
  retention_.ended(awaited.use, TurnEnd::end, "a_tool");
  faults_->next(Fault::io_error);
  const Context next = context(3, 5);
  EXPECT_EQ(n_kept(left), 0);
  EXPECT_EQ(n_kept(awaited), 7);
  EXPECT_EQ(n_kept(next), 5);
  EXPECT_LE(store_->counts().bytes, 12 * kRecord + 4096);
}

// Where the file system cannot give parts back, whole segments go, those worth least first.
TEST_F(StoreByWorth, without_holes_segments_go) {
  open(12);
  Context left = context(1, 4), awaited = context(2, 4);
  retention_.ended(left.use, TurnEnd::end);
  retention_.ended(awaited.use, TurnEnd::end, "a_tool");
  faults_->cannot_punch = true;
  const Context next = context(3, 6);
  EXPECT_GE(n_kept(awaited), 4);
  EXPECT_EQ(n_kept(next), 6);
  EXPECT_LE(store_->counts().bytes, 12 * kRecord + 4096);
}

}  // namespace
}  // namespace millrace::disk
