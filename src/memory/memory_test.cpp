// The owners of host memory: HostBuffer, GuardedBuffer and MappedFile.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <thread>
#include <vector>

#include "memory/host.h"
#include "memory/mapped_file.h"

namespace millrace {
namespace {

size_t page_bytes() {
  return static_cast<size_t>(sysconf(_SC_PAGESIZE));
}

TEST(HostBuffer, IsZeroedAlignedAndItsOwn) {
  for (size_t bytes : {size_t{1}, size_t{4097}, (size_t{5} << 20) + 3}) {
    auto buffer = HostBuffer::make(bytes);
    ASSERT_TRUE(buffer.ok());
    EXPECT_EQ(buffer->bytes(), bytes);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(buffer->data()) % 64, 0u);
    EXPECT_TRUE(std::all_of(buffer->data(), buffer->data() + bytes,
                            [](std::byte b) { return b == std::byte{0}; }));
    std::memset(buffer->data(), 0xff, bytes);
  }
}

TEST(HostBuffer, LargeOnesStartAtAHugePage) {
  auto buffer = HostBuffer::make(size_t{3} << 20);
  ASSERT_TRUE(buffer.ok());
  EXPECT_EQ(reinterpret_cast<uintptr_t>(buffer->data()) % (size_t{2} << 20), 0u);
}

TEST(HostBuffer, EmptyAndImpossibleSizes) {
  auto empty = HostBuffer::make(0);
  ASSERT_TRUE(empty.ok());
  EXPECT_EQ(empty->bytes(), 0u);
  EXPECT_EQ(HostBuffer::make(SIZE_MAX).status().code(), Code::out_of_memory);
  EXPECT_EQ(HostBuffer::make(SIZE_MAX / 4).status().code(), Code::out_of_memory);
}

TEST(HostBuffer, MovesItsMemory) {
  auto made = HostBuffer::make(100);
  ASSERT_TRUE(made.ok());
  HostBuffer a = std::move(made).value();
  std::byte* data = a.data();
  HostBuffer b = std::move(a);
  EXPECT_EQ(b.data(), data);
  HostBuffer c;
  c = std::move(b);
  EXPECT_EQ(c.data(), data);
  c.data()[99] = std::byte{1};
}

TEST(GuardedBuffer, EndsAtTheGuardPage) {
  for (size_t bytes : {size_t{1}, size_t{63}, size_t{4096}, size_t{5000}}) {
    auto buffer = GuardedBuffer::make(bytes, 1);
    ASSERT_TRUE(buffer.ok());
    EXPECT_EQ(reinterpret_cast<uintptr_t>(buffer->data() + bytes) % page_bytes(), 0u);
    std::memset(buffer->data(), 1, bytes);
    EXPECT_GE(buffer->slack().size(), page_bytes());
    EXPECT_EQ(buffer->slack().data() + buffer->slack().size(), buffer->data());
  }
}

TEST(GuardedBuffer, KeepsTheAlignmentAskedFor) {
  auto buffer = GuardedBuffer::make(100, 64);
  ASSERT_TRUE(buffer.ok());
  EXPECT_EQ(reinterpret_cast<uintptr_t>(buffer->data()) % 64, 0u);
  EXPECT_LT(page_bytes() - reinterpret_cast<uintptr_t>(buffer->data() + 100) % page_bytes(), 64u);
}

TEST(GuardedBufferDeathTest, AReadPastTheEndFaults) {
  auto buffer = GuardedBuffer::make(10, 1);
  ASSERT_TRUE(buffer.ok());
  const volatile std::byte* end = buffer->data() + 10;
  EXPECT_DEATH((void)*end, "");
}

class MappedFileTest : public testing::Test {
 protected:
  void SetUp() override {
    const auto* info = testing::UnitTest::GetInstance()->current_test_info();
    path_ = testing::TempDir() + "millrace_mapped_" + info->name();
  }
  void TearDown() override { std::filesystem::remove_all(path_); }

  void write(size_t bytes) {
    std::ofstream file(path_, std::ios::binary);
    for (size_t i = 0; i < bytes; ++i) file.put(static_cast<char>(i % 251));
  }
  static bool holds_pattern(std::span<const std::byte> bytes) {
    for (size_t i = 0; i < bytes.size(); ++i)
      if (bytes[i] != static_cast<std::byte>(i % 251)) return false;
    return true;
  }
  std::string path_;
};

TEST_F(MappedFileTest, ReadsTheWholeFile) {
  write(3 * page_bytes() + 17);
  auto file = MappedFile::open(path_);
  ASSERT_TRUE(file.ok()) << file.status().message();
  EXPECT_EQ(file->bytes().size(), 3 * page_bytes() + 17);
  EXPECT_TRUE(holds_pattern(file->bytes()));
}

// How many pages of the range this process has mapped in now.
size_t resident_kib(const void* begin) {
  std::ifstream maps("/proc/self/smaps");
  char start[32];
  std::snprintf(start, sizeof start, "%lx-", reinterpret_cast<unsigned long>(begin));
  bool inside = false;
  for (std::string line; std::getline(maps, line);) {
    if (line.starts_with(start)) inside = true;
    if (inside && line.starts_with("Rss:")) return std::stoul(line.substr(4));
  }
  return SIZE_MAX;
}

TEST_F(MappedFileTest, DropsWholePagesAndKeepsTheBytes) {
  const size_t page = page_bytes();
  write(8 * page + 5);
  auto file = MappedFile::open(path_);
  ASSERT_TRUE(file.ok());
  ASSERT_TRUE(holds_pattern(file->bytes()));
  const size_t before = resident_kib(file->bytes().data());
  file->drop(1, 2 * page);  // page 1 alone lies inside
  EXPECT_EQ(resident_kib(file->bytes().data()), before - page / 1024);
  file->drop(0, SIZE_MAX);
  EXPECT_EQ(resident_kib(file->bytes().data()), 0u);
  ASSERT_TRUE(holds_pattern(file->bytes()));
  file->drop(file->bytes().subspan(page, page));
  EXPECT_EQ(resident_kib(file->bytes().data()), before - page / 1024);
  file->drop(std::as_bytes(std::span(path_)));  // not its bytes
  EXPECT_EQ(resident_kib(file->bytes().data()), before - page / 1024);
  file->drop(SIZE_MAX, 5);
  file->drop(8 * page + 5, 1);
  EXPECT_TRUE(holds_pattern(file->bytes()));
}

TEST_F(MappedFileTest, AnEmptyFileIsEmpty) {
  write(0);
  auto file = MappedFile::open(path_);
  ASSERT_TRUE(file.ok());
  EXPECT_TRUE(file->bytes().empty());
  file->drop(0, 10);
}

TEST_F(MappedFileTest, RefusesWhatIsNoFile) {
  EXPECT_EQ(MappedFile::open(path_).status().code(), Code::not_found);
  std::filesystem::create_directory(path_);
  EXPECT_EQ(MappedFile::open(path_).status().code(), Code::invalid_argument);
  std::filesystem::remove(path_);
  ASSERT_EQ(mkfifo(path_.c_str(), 0600), 0);
  EXPECT_EQ(MappedFile::open(path_).status().code(), Code::invalid_argument);
}

TEST_F(MappedFileTest, Moves) {
  write(100);
  auto made = MappedFile::open(path_);
  ASSERT_TRUE(made.ok());
  MappedFile a = std::move(made).value();
  MappedFile b = std::move(a);
  EXPECT_TRUE(a.bytes().empty());
  a = std::move(b);
  EXPECT_TRUE(holds_pattern(a.bytes()));
  EXPECT_EQ(a.bytes().size(), 100u);
}

uint64_t sum_of(std::span<const std::byte> bytes) {
  uint64_t sum = 0;
  for (const std::byte b : bytes) sum += static_cast<uint64_t>(b);
  return sum;
}

TEST_F(MappedFileTest, AFileThatIsCutShortIsDamagedAndReadsAsZeros) {
  const size_t page = page_bytes();
  write(64 * page);
  auto file = MappedFile::open(path_);
  ASSERT_TRUE(file.ok());
  ASSERT_TRUE(holds_pattern(file->bytes().first(page)));
  EXPECT_FALSE(file->is_damaged());
  EXPECT_TRUE(file->check().ok());
  std::filesystem::resize_file(path_, 8 * page);
  ASSERT_TRUE(holds_pattern(file->bytes().first(8 * page)));
  EXPECT_FALSE(file->is_damaged());  // nobody has asked for what is missing
  EXPECT_EQ(sum_of(file->bytes().subspan(20 * page)), 0u);
  EXPECT_TRUE(file->is_damaged());
  EXPECT_EQ(sum_of(file->bytes().subspan(8 * page)), 0u);
  file->drop(0, SIZE_MAX);
  EXPECT_EQ(sum_of(file->bytes().subspan(8 * page)), 0u);
  EXPECT_TRUE(holds_pattern(file->bytes().first(8 * page)));
  EXPECT_EQ(file->check().code(), Code::io_error);
  EXPECT_NE(file->check().message().find(path_), std::string_view::npos);

  const MappedFile moved = std::move(*file);
  EXPECT_TRUE(moved.is_damaged());
  EXPECT_FALSE(file->is_damaged());
}

TEST_F(MappedFileTest, AFileThatIsWrittenToIsFound) {
  write(4 * page_bytes());
  auto file = MappedFile::open(path_);
  ASSERT_TRUE(file.ok());
  EXPECT_TRUE(file->check().ok());
  {
    std::fstream out(path_, std::ios::in | std::ios::out | std::ios::binary);
    out.write("other", 5);
  }
  // The clock of a file system may be coarse.
  std::filesystem::last_write_time(path_, std::filesystem::file_time_type::clock::now());
  EXPECT_FALSE(file->is_damaged());
  EXPECT_EQ(file->check().code(), Code::io_error);
  EXPECT_TRUE(MappedFile::open(path_)->check().ok());
}

// The page in which the file now ends can be read to its end, so no fault tells.
TEST_F(MappedFileTest, AFewBytesLessAreFoundByTheSize) {
  write(4 * page_bytes());
  auto file = MappedFile::open(path_);
  ASSERT_TRUE(file.ok());
  std::filesystem::resize_file(path_, 4 * page_bytes() - 10);
  EXPECT_EQ(file->check().code(), Code::io_error);
  // Another file of the name is none of its business.
  std::filesystem::remove(path_);
  EXPECT_TRUE(file->check().ok());
  write(10);
  EXPECT_TRUE(file->check().ok());
  EXPECT_NE(sum_of(file->bytes()), 0u);
}

TEST_F(MappedFileTest, DamageStaysWithItsFile) {
  const size_t page = page_bytes();
  write(16 * page);
  auto whole = MappedFile::open(path_);
  const std::string other = path_ + "_other";
  std::filesystem::copy_file(path_, other, std::filesystem::copy_options::overwrite_existing);
  {
    auto cut = MappedFile::open(other);
    ASSERT_TRUE(whole.ok() && cut.ok());
    std::filesystem::resize_file(other, 0);
    EXPECT_EQ(sum_of(cut->bytes()), 0u);
    EXPECT_TRUE(cut->is_damaged());
  }
  std::filesystem::remove(other);
  EXPECT_FALSE(whole->is_damaged());
  EXPECT_TRUE(whole->check().ok());
  EXPECT_TRUE(holds_pattern(whole->bytes()));
  auto again = MappedFile::open(path_);  // takes the place of the damaged one
  ASSERT_TRUE(again.ok());
  EXPECT_FALSE(again->is_damaged());
}

TEST_F(MappedFileTest, ThreadsThatFaultTogetherAllGoOn) {
  const size_t page = page_bytes();
  write(256 * page);
  auto file = MappedFile::open(path_);
  ASSERT_TRUE(file.ok());
  std::filesystem::resize_file(path_, 0);
  std::vector<std::thread> readers;
  for (size_t i = 0; i < 8; ++i)
    readers.emplace_back([&, i] {
      for (size_t at = i; at < 256; at += 8)
        EXPECT_EQ(sum_of(file->bytes().subspan(at * page, page)), 0u);
      EXPECT_TRUE(file->is_damaged());
    });
  for (std::thread& reader : readers) reader.join();
}

// A fault outside of our mappings stays one, and a signal that somebody sends too. Each in a
// process of its own, which has no handler of ours before.
TEST_F(MappedFileTest, OtherFaultsGoWhereTheyWent) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(
      {
        write(page_bytes());
        auto ours = MappedFile::open(path_);
        const int fd = ::open(path_.c_str(), O_RDONLY);
        const void* other = mmap(nullptr, page_bytes(), PROT_READ, MAP_PRIVATE, fd, 0);
        std::filesystem::resize_file(path_, 0);
        (void)*static_cast<const volatile char*>(other);
      },
      "");
  EXPECT_DEATH(
      {
        write(page_bytes());
        auto ours = MappedFile::open(path_);
        raise(SIGBUS);
      },
      "");
  EXPECT_EXIT(
      {
        write(page_bytes());
        signal(SIGBUS, [](int) { _exit(7); });
        auto ours = MappedFile::open(path_);
        raise(SIGBUS);
      },
      testing::ExitedWithCode(7), "");
}

}  // namespace
}  // namespace millrace
