// Records on disk: found again after a restart, never wrong, never more than the budget; what is
// torn, damaged, foreign or gone is a miss that is counted.
#include "engine/disk/store.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <set>
#include <thread>

#include "engine/disk/faulty_files_test.h"
#include "engine/disk/survey.h"
#include "engine/disk/temporary_folder_test.h"
#include "engine/disk/twin_pages_test.h"

namespace millrace::disk {
namespace {

namespace fs = std::filesystem;

constexpr size_t kPayload = 3000, kShare = 1000;  // of two groups: 1000 and 2000 bytes
const Root kRoot = root_of("a model");

std::vector<int32_t> page_of(uint64_t seed, size_t n = kPageIds) {
  Rng rng(seed);
  std::vector<int32_t> out;
  for (size_t i = 0; i < n; ++i) out.push_back(static_cast<int32_t>(rng.below(1000)));
  return out;
}

std::vector<std::byte> payload_of(uint64_t seed) {
  Rng rng(seed, 1);
  std::vector<std::byte> out(kPayload);
  for (std::byte& b : out) b = static_cast<std::byte>(rng.next_u32());
  return out;
}

Hash128 start(std::string_view salt = "") {
  return first_hash(kRoot, salt_of(salt));
}

// The page `seed` after `before`; gives the hash of both.
Status write(Store& store, const Hash128& before, uint64_t seed, size_t n = kPageIds) {
  std::vector<std::byte> payload = payload_of(seed);
  Store::Writing record;
  const auto tokens = page_of(seed, n);
  record.entry.n_tokens = static_cast<uint32_t>(n);
  record.entry.before = before;
  record.entry.prefix = next_hash(before, tokens);
  record.entry.parts[0].bytes = kShare;
  record.entry.parts[1].bytes = kPayload - kShare;
  std::copy(tokens.begin(), tokens.end(), record.entry.tokens.begin());
  record.payload = payload.data();
  Store::Writing* one = &record;
  return store.write({&one, 1});
}

bool reads(Store& store, const Hash128& prefix, uint64_t seed) {
  std::vector<std::byte> got(kPayload);
  Store::Reading record{.prefix = prefix};
  record.to = {got.data(), got.data() + kShare};
  record.bytes = {kShare, kPayload - kShare};
  Store::Reading* one = &record;
  store.read({&one, 1});
  if (record.is_good) {
    EXPECT_EQ(got, payload_of(seed));
  }
  return record.is_good;
}

struct Opened {
  Folder folder;
  std::unique_ptr<Store> store;
  FaultyFiles* faults = nullptr;
};

Opened open(const TemporaryFolder& in, StoreOptions options = {}) {
  Opened out;
  options.root = options.root == Root() ? kRoot : options.root;
  out.folder = open_folder(in.path(), "model").value();
  auto faulty = std::make_unique<FaultyFiles>(std::move(out.folder.files), 1, 0);
  out.faults = faulty.get();
  out.folder.files = std::move(faulty);
  out.store = Store::open(*out.folder.files, options).value();
  return out;
}

TEST(DiskStore, finds_again_what_it_wrote_after_a_restart) {
  const TemporaryFolder folder;
  const Hash128 first = next_hash(start(), page_of(1));
  {
    Opened opened = open(folder);
    ASSERT_TRUE(write(*opened.store, start(), 1).ok());
    ASSERT_TRUE(write(*opened.store, first, 2, 20).ok());
  }
  Opened opened = open(folder);
  const auto whole = opened.store->find(start(), page_of(1));
  ASSERT_TRUE(whole.has_value());
  EXPECT_EQ(whole->n_common, kPageIds);
  EXPECT_EQ(whole->groups, 3u);
  EXPECT_TRUE(reads(*opened.store, first, 1));
  auto longer = page_of(2);
  longer[12] ^= 1;  // the short record begins like it, up to there
  const auto part = opened.store->find(first, longer);
  ASSERT_TRUE(part.has_value());
  EXPECT_EQ(part->n_common, 12u);
  EXPECT_EQ(part->n_tokens, 20u);
  EXPECT_TRUE(reads(*opened.store, part->prefix, 2));
  EXPECT_FALSE(opened.store->find(start("another tenant"), page_of(1)).has_value());
  EXPECT_FALSE(opened.store->find(start(), page_of(9)).has_value());
}

TEST(DiskStore, another_root_is_a_miss) {
  const TemporaryFolder folder;
  {
    Opened opened = open(folder);
    ASSERT_TRUE(write(*opened.store, start(), 1).ok());
  }
  for (Root other : {root_of("another model"), Root{kRoot.model, {1, 1}}}) {
    Opened opened = open(folder, {.root = other});
    EXPECT_EQ(opened.store->counts().n_foreign, 1u);
    EXPECT_EQ(opened.store->counts().n_records, 0u);
  }
}

TEST(DiskStore, what_follows_other_tokens_is_a_miss_even_if_somebody_chose_them) {
  const TemporaryFolder folder;
  Opened opened = open(folder);
  const Hash128 one = next_hash(start(), twin_page(true));
  ASSERT_TRUE(write(*opened.store, one, 2).ok());
  EXPECT_TRUE(opened.store->find(one, page_of(2)).has_value());
  EXPECT_FALSE(opened.store->find(next_hash(start(), twin_page(false)), page_of(2)).has_value());
}

TEST(DiskStore, a_longer_end_takes_the_place_of_a_shorter) {
  const TemporaryFolder folder;
  Opened opened = open(folder);
  for (const size_t n : {5, 30, 64}) ASSERT_TRUE(write(*opened.store, start(), 1, n).ok());
  EXPECT_EQ(opened.store->counts().n_records, 1u);
  EXPECT_EQ(opened.store->find(start(), page_of(1))->n_tokens, kPageIds);
}

// Any byte of any file may change, and any file may end anywhere.
TEST(DiskStore, damage_is_a_miss_and_never_wrong_bytes) {
  constexpr uint64_t kRecords = 6;
  Rng rng(7);
  uint64_t n_missed = 0;
  for (int round = 0; round < 60; ++round) {
    const TemporaryFolder folder;
    {
      Opened opened = open(folder);
      for (uint64_t i = 0; i < kRecords; ++i) ASSERT_TRUE(write(*opened.store, start(), i).ok());
    }
    const fs::path file = folder.path() + "/model/00000001." + (round % 2 == 0 ? "ids" : "kv");
    const uint64_t size = fs::file_size(file), at = rng.below(size);
    if (round % 3 == 0) {
      fs::resize_file(file, at);
    } else {
      std::fstream stream(file, std::ios::in | std::ios::out | std::ios::binary);
      stream.seekg(static_cast<int64_t>(at));
      const char changed = static_cast<char>(stream.get() ^ (1 << rng.below(8)));
      stream.seekp(static_cast<int64_t>(at));
      stream.put(changed);
    }
    Opened opened = open(folder);
    uint64_t n_good = 0;
    for (uint64_t i = 0; i < kRecords; ++i)
      if (const auto found = opened.store->find(start(), page_of(i));
          found && found->n_common == 64)
        n_good += reads(*opened.store, found->prefix, i);
    const Store::Counts counts = opened.store->counts();
    EXPECT_LT(n_good, kRecords) << round;
    EXPECT_GT(counts.n_damaged + counts.n_bad_reads + (round % 3 == 0), 0u);
    n_missed += kRecords - n_good;
  }
  EXPECT_LT(n_missed, 60 * kRecords);
}

TEST(DiskStore, a_missing_file_and_bad_luck_at_reading_are_misses) {
  const TemporaryFolder folder;
  Opened opened = open(folder);
  for (uint64_t i = 0; i < 4; ++i) ASSERT_TRUE(write(*opened.store, start(), i).ok());
  uint64_t i = 0;
  for (const Fault fault : {Fault::missing, Fault::io_error, Fault::bit_flip}) {
    opened.faults->next(fault);
    EXPECT_FALSE(reads(*opened.store, next_hash(start(), page_of(i)), i));
    EXPECT_FALSE(opened.store->find(start(), page_of(i)).has_value()) << "it is forgotten";
    ++i;
  }
  EXPECT_EQ(opened.store->counts().n_bad_reads, 3u);
  EXPECT_TRUE(reads(*opened.store, next_hash(start(), page_of(3)), 3));
}

TEST(DiskStore, a_record_that_nobody_could_look_at_is_kept) {
  const TemporaryFolder folder;
  Opened opened = open(folder);
  ASSERT_TRUE(write(*opened.store, start(), 1).ok());
  rlimit before{};
  getrlimit(RLIMIT_NOFILE, &before);
  const rlimit none{.rlim_cur = 0, .rlim_max = before.rlim_max};
  setrlimit(RLIMIT_NOFILE, &none);
  EXPECT_FALSE(reads(*opened.store, next_hash(start(), page_of(1)), 1));
  setrlimit(RLIMIT_NOFILE, &before);
  EXPECT_EQ(opened.store->counts().n_bad_reads, 0u);
  EXPECT_TRUE(reads(*opened.store, next_hash(start(), page_of(1)), 1));
}

// The injector injects: each fault does what it says, seen through the store.
TEST(DiskStore, every_fault_is_injected) {
  const TemporaryFolder folder;
  Opened opened = open(folder);
  ASSERT_TRUE(write(*opened.store, start(), 100).ok());
  uint64_t seed = 0;
  for (const Fault fault :
       {Fault::short_write, Fault::bit_flip, Fault::no_space, Fault::io_error, Fault::delay}) {
    opened.faults->next(fault);
    const bool fails = fault == Fault::no_space || fault == Fault::io_error;
    EXPECT_EQ(write(*opened.store, start(), ++seed).ok(), !fails);
    EXPECT_EQ(opened.faults->n_injected(fault), 1);
    const bool is_found = opened.store->find(start(), page_of(seed)).has_value();
    EXPECT_EQ(is_found, !fails);
    const bool is_good = is_found && reads(*opened.store, next_hash(start(), page_of(seed)), seed);
    EXPECT_EQ(is_good, fault == Fault::delay);
  }
  EXPECT_TRUE(reads(*opened.store, next_hash(start(), page_of(100)), 100));
}

uint64_t bytes_in(const std::string& path) {
  uint64_t bytes = 0;
  for (const auto& file : fs::directory_iterator(path)) bytes += fs::file_size(file);
  return bytes;
}

TEST(DiskStore, the_size_is_a_hard_limit_and_the_least_used_goes_first) {
  const TemporaryFolder folder;
  constexpr uint64_t kMost = 100'000;
  const StoreOptions options{.max_bytes = kMost, .segment_bytes = 10'000};
  {
    Opened opened = open(folder, options);
    for (uint64_t i = 0; i < 200; ++i) {
      ASSERT_TRUE(write(*opened.store, start(), i).ok());
      ASSERT_LE(bytes_in(opened.folder.path), kMost);
      ASSERT_LE(opened.store->counts().bytes, kMost);
    }
    EXPECT_GT(opened.store->counts().n_dropped, 100u);
    EXPECT_FALSE(opened.store->find(start(), page_of(0)).has_value());
    EXPECT_TRUE(opened.store->find(start(), page_of(199)).has_value());
  }
  Opened smaller = open(folder, {.max_bytes = kMost / 2, .segment_bytes = 10'000});
  EXPECT_LE(bytes_in(smaller.folder.path), kMost / 2);
  const Status too_big = [&] {
    Opened tiny = Opened{};
    tiny.store = Store::open(*smaller.folder.files, {.root = kRoot, .max_bytes = 1000}).value();
    return write(*tiny.store, start(), 1);
  }();
  EXPECT_EQ(too_big.code(), Code::unavailable);
}

constexpr uint64_t kRecord = kPayload + kEntryBytes;

TEST(DiskStore, what_cannot_be_removed_still_counts) {
  const TemporaryFolder folder;
  const StoreOptions options{.max_bytes = 4 * kRecord, .segment_bytes = kRecord};
  Opened opened = open(folder, options);
  for (uint64_t i = 0; i < 4; ++i) ASSERT_TRUE(write(*opened.store, start(), i).ok());
  opened.faults->keeps_files = true;
  for (uint64_t i = 4; i < 8; ++i) EXPECT_FALSE(write(*opened.store, start(), i).ok());
  EXPECT_LE(bytes_in(opened.folder.path), options.max_bytes);
  EXPECT_EQ(opened.store->counts().bytes, 4 * kRecord);
  EXPECT_EQ(opened.store->counts().n_records, 3u) << "the one that was to go, and no other";
  opened.faults->keeps_files = false;
  EXPECT_TRUE(write(*opened.store, start(), 8).ok());
  EXPECT_EQ(opened.store->counts().n_records, 4u);
}

TEST(DiskStore, writes_that_fail_do_not_push_out_what_is_there) {
  const TemporaryFolder folder;
  Opened opened = open(folder, {.max_bytes = 10 * kRecord, .segment_bytes = 3 * kRecord});
  for (uint64_t i = 0; i < 5; ++i) ASSERT_TRUE(write(*opened.store, start(), i).ok());
  for (uint64_t i = 5; i < 50; ++i) {
    opened.faults->next(Fault::io_error);
    EXPECT_FALSE(write(*opened.store, start(), i).ok());
  }
  EXPECT_EQ(opened.store->counts().n_records, 5u);
  EXPECT_EQ(opened.store->counts().n_dropped, 0u);
  EXPECT_LE(opened.store->counts().n_segments, 3u);
}

// Of contexts that go on in many ways from one place, each is found, and none costs a look at all
// the others.
TEST(DiskStore, one_of_many_that_go_on_from_one_place_is_found) {
  const TemporaryFolder folder;
  constexpr uint64_t kMany = 10'000;
  {
    Opened opened = open(folder);
    for (uint64_t i = 0; i < kMany; ++i) ASSERT_TRUE(write(*opened.store, start(), i, 32).ok());
  }
  Opened opened = open(folder);
  EXPECT_EQ(opened.store->counts().n_records, kMany);
  for (uint64_t i = 0; i < kMany; i += 97) {
    auto asked = page_of(i, 32);
    asked[20] += 1000;
    const auto found = opened.store->find(start(), asked);
    ASSERT_TRUE(found.has_value()) << i;
    EXPECT_EQ(found->n_common, 20u);
    EXPECT_EQ(found->prefix, next_hash(start(), page_of(i, 32)));
  }
}

// As a clock that is wrong, or somebody, wrote them.
void change_entries(const std::string& file, const std::function<void(Entry&)>& change) {
  std::fstream stream(file, std::ios::in | std::ios::out | std::ios::binary);
  Entry entry;
  while (stream.read(reinterpret_cast<char*>(&entry), sizeof entry)) {
    change(entry);
    seal(entry);
    stream.seekp(-static_cast<std::streamoff>(sizeof entry), std::ios::cur);
    stream.write(reinterpret_cast<const char*>(&entry), sizeof entry);
    stream.seekg(stream.tellp());
  }
}

TEST(DiskStore, records_of_the_future_go_like_others) {
  const TemporaryFolder folder;
  const StoreOptions options{.max_bytes = 4 * kRecord, .segment_bytes = kRecord};
  {
    Opened opened = open(folder, options);
    for (uint64_t i = 0; i < 4; ++i) ASSERT_TRUE(write(*opened.store, start(), i).ok());
  }
  for (int i = 1; i <= 4; ++i)
    change_entries(folder.path() + fmt::format("/model/{:08}.ids", i),
                   [](Entry& entry) { entry.written_s = INT64_MAX; });
  Opened opened = open(folder, options);
  EXPECT_EQ(opened.store->counts().n_records, 4u);
  for (uint64_t i = 4; i < 8; ++i) ASSERT_TRUE(write(*opened.store, start(), i).ok());
  for (uint64_t i = 0; i < 8; ++i)
    EXPECT_EQ(opened.store->find(start(), page_of(i)).has_value(), i >= 4) << i;
}

TEST(DiskStore, entries_that_say_what_cannot_be_are_misses) {
  const std::function<void(Entry&)> changes[] = {[](Entry& e) { e.n_tokens = UINT32_MAX; },
                                                 [](Entry& e) { e.n_tokens = 0; },
                                                 [](Entry& e) { e.offset = UINT64_MAX; },
                                                 [](Entry& e) { e.offset = UINT64_MAX / 2; },
                                                 [](Entry& e) { e.tokens[3] += 1; },
                                                 [](Entry& e) { e.before.low ^= 1; },
                                                 [](Entry& e) { e.root.model.low ^= 1; },
                                                 [](Entry& e) { e.parts[3].bytes = 1; },
                                                 [](Entry& e) {
                                                   for (Part& part : e.parts)
                                                     part.bytes = UINT64_MAX / 2;
                                                 }};
  for (const auto& change : changes) {
    const TemporaryFolder folder;
    {
      Opened opened = open(folder);
      ASSERT_TRUE(write(*opened.store, start(), 1).ok());
    }
    change_entries(folder.path() + "/model/00000001.ids", change);
    Opened opened = open(folder);
    EXPECT_EQ(opened.store->counts().n_records, 0u);
    EXPECT_EQ(opened.store->counts().n_damaged + opened.store->counts().n_foreign, 1u);
  }
}

TEST(DiskStore, files_of_other_names_are_left_alone) {
  const TemporaryFolder folder;
  {
    Opened opened = open(folder);
    ASSERT_TRUE(write(*opened.store, start(), 1).ok());
  }
  const std::string strange[] = {"1.ids", "1.kv", "18446744073709551615.kv", "x.kv", "0.ids"};
  for (const std::string& name : strange) std::ofstream(folder.path() + "/model/" + name) << "x";
  Opened opened = open(folder);
  EXPECT_EQ(opened.store->counts().n_segments, 1u);
  EXPECT_EQ(opened.store->counts().n_records, 1u);
  ASSERT_TRUE(write(*opened.store, start(), 2).ok());
  EXPECT_TRUE(fs::exists(folder.path() + "/model/00000002.kv"));
  for (const std::string& name : strange)
    EXPECT_TRUE(fs::exists(folder.path() + "/model/" + name)) << name;
}

TEST(DiskStore, a_day_has_a_budget_that_a_restart_does_not_renew) {
  const TemporaryFolder folder;
  const StoreOptions options{.daily_bytes = 3 * (kPayload + kEntryBytes)};
  {
    Opened opened = open(folder, options);
    for (uint64_t i = 0; i < 3; ++i) {
      ASSERT_TRUE(opened.store->may_write(kPayload));
      ASSERT_TRUE(write(*opened.store, start(), i).ok());
    }
    EXPECT_FALSE(opened.store->may_write(kPayload));
  }
  Opened again = open(folder, options);
  EXPECT_FALSE(again.store->may_write(kPayload));
}

TEST(DiskStore, what_was_written_counts_for_the_day_though_it_is_gone) {
  const TemporaryFolder folder;
  const StoreOptions options{
      .max_bytes = 5 * kRecord, .daily_bytes = 20 * kRecord, .segment_bytes = kRecord};
  {
    Opened opened = open(folder, options);
    for (uint64_t i = 0; i < 20; ++i) ASSERT_TRUE(write(*opened.store, start(), i).ok());
    EXPECT_FALSE(opened.store->may_write(kPayload));
  }
  Opened again = open(folder, options);
  EXPECT_FALSE(again.store->may_write(kPayload));
}

TEST(DiskFolder, is_private_and_held_by_one) {
  const TemporaryFolder above;
  auto folder = open_folder(above.path() + "/made/on/the/way", "model");
  ASSERT_TRUE(folder.ok()) << folder.status().message();
  struct stat facts {};
  ASSERT_EQ(stat(folder->path.c_str(), &facts), 0);
  EXPECT_EQ(facts.st_mode & 0777, 0700u);
  EXPECT_EQ(open_folder(above.path() + "/made/on/the/way", "model").status().code(),
            Code::unavailable);
  folder = Status(Code::cancelled, "closed");
  EXPECT_TRUE(open_folder(above.path() + "/made/on/the/way", "model").ok());
}

// Else a server that starts while somebody lists folders would be without its own until it ends.
TEST(DiskFolder, who_looks_at_the_lock_for_a_moment_is_waited_for) {
  const TemporaryFolder above;
  fs::create_directory(above.path() + "/model");
  const int lock = ::open((above.path() + "/model/lock").c_str(), O_RDWR | O_CREAT, 0600);
  ASSERT_EQ(flock(lock, LOCK_EX | LOCK_NB), 0);
  std::thread looker([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(30));
    close(lock);
  });
  EXPECT_TRUE(open_folder(above.path(), "model").ok());
  looker.join();
}

TEST(DiskFolder, strange_files_hold_up_nobody_who_lists_them) {
  const TemporaryFolder above;
  const std::string roots[] = {std::string(32, 'a'), std::string(32, 'b'), std::string(32, 'c')};
  for (const std::string& root : roots) fs::create_directory(above.path() + "/" + root);
  ASSERT_EQ(mkfifo((above.path() + "/" + roots[0] + "/model").c_str(), 0600), 0);
  fs::create_symlink("/dev/zero", above.path() + "/" + roots[1] + "/model");
  std::ofstream(above.path() + "/" + roots[2] + "/model") << "a\x1b[2Jb\xff\n";
  const auto folders = survey(above.path());
  ASSERT_TRUE(folders.ok()) << folders.status().message();
  std::set<std::string> names;
  for (const FolderFacts& one : folders.value()) names.insert(one.model);
  EXPECT_EQ(names, (std::set<std::string>{"", "a\\x1b[2Jb\\xff"}));
  for (const std::string& root : roots)
    EXPECT_EQ(remove_folder(above.path(), root).ok(), root == roots[2]);
}

TEST(DiskFolder, follows_no_links_and_trusts_no_others) {
  const TemporaryFolder above;
  fs::create_directory(above.path() + "/elsewhere");
  fs::create_directory_symlink(above.path() + "/elsewhere", above.path() + "/link");
  EXPECT_FALSE(open_folder(above.path() + "/link", "model").ok());
  EXPECT_FALSE(open_folder(above.path() + "/link/", "model").ok());
  EXPECT_FALSE(open_folder(above.path(), "link").ok());
  chmod((above.path() + "/elsewhere").c_str(), 0777);
  const auto open_to_all = open_folder(above.path() + "/elsewhere", "model");
  EXPECT_EQ(open_to_all.status().code(), Code::invalid_argument);
  auto own = open_folder(above.path(), "own");
  ASSERT_TRUE(own.ok());
  fs::create_symlink("/etc/passwd", own->path + "/00000001.kv");
  EXPECT_FALSE(own->files->open("00000001.kv").ok());
  EXPECT_FALSE(own->files->create("00000001.kv").ok());
}

}  // namespace
}  // namespace millrace::disk
