#include "files/gguf.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "base/philox.h"
#include "files/gguf_bytes_test.h"

namespace millrace {
namespace {

constexpr uint32_t kF32 = 0, kQ4_0 = 2;

Result<Gguf> read(const GgufBytes& bytes) {
  return Gguf::read(bytes.span(), "test.gguf");
}

std::string error_of(const GgufBytes& bytes) {
  const auto gguf = read(bytes);
  return gguf.ok() ? "" : std::string(gguf.status().message());
}

// The file is refused, and the message holds `part`.
void expect_refused(const GgufBytes& bytes, std::string_view part) {
  const std::string message = error_of(bytes);
  EXPECT_NE(message.find(part), std::string::npos) << "wanted: " << part << "\ngot: " << message;
}

TEST(Gguf, ReadsEveryKindOfValue) {
  GgufBytes b;
  b.begin(0, 13);
  b.key("u8", GgufType::u8).put<uint8_t>(200);
  b.key("i8", GgufType::i8).put<int8_t>(-3);
  b.key("u16", GgufType::u16).put<uint16_t>(60000);
  b.key("i16", GgufType::i16).put<int16_t>(-30000);
  b.u32("u32", 4000000000);
  b.key("i32", GgufType::i32).put<int32_t>(-2000000000);
  b.f32("f32", 0.5f);
  b.key("bool", GgufType::boolean).put<uint8_t>(1);
  b.string("string", "h\xff llo");
  b.array("array", GgufType::string, 3).text("a").text("").text("語");
  b.key("u64", GgufType::u64).put<uint64_t>(~uint64_t{0});
  b.key("i64", GgufType::i64).put<int64_t>(-5'000'000'000);
  b.key("f64", GgufType::f64).put<double>(1e300);
  for (const uint32_t version : {2, 3}) {
    GgufBytes copy = b;
    std::memcpy(const_cast<char*>(copy.str().data()) + 4, &version, 4);
    auto gguf = read(copy);
    ASSERT_TRUE(gguf.ok()) << gguf.status().message();
    EXPECT_EQ(gguf->version(), version);
    EXPECT_EQ(gguf->integer("u8").value(), 200);
    EXPECT_EQ(gguf->integer("i8").value(), -3);
    EXPECT_EQ(gguf->integer("u16").value(), 60000);
    EXPECT_EQ(gguf->integer("i16").value(), -30000);
    EXPECT_EQ(gguf->integer("u32").value(), 4000000000);
    EXPECT_EQ(gguf->integer("i32").value(), -2000000000);
    EXPECT_EQ(gguf->real("f32").value(), 0.5);
    EXPECT_TRUE(gguf->boolean("bool").value());
    EXPECT_EQ(gguf->string("string").value(), "h\xff llo");
    EXPECT_EQ(gguf->find("array")->strings(), (std::vector<std::string_view>{"a", "", "語"}));
    EXPECT_FALSE(gguf->integer("u64").ok()) << "does not fit";
    EXPECT_EQ(gguf->integer("i64").value(), -5'000'000'000);
    EXPECT_EQ(gguf->real("f64").value(), 1e300);
    EXPECT_EQ(gguf->real("u8").value(), 200.0);
  }
}

TEST(Gguf, SaysWhatIsWrongWithAKey) {
  GgufBytes b;
  b.begin(0, 2).u32("n", 7).array("list", GgufType::i32, 2).put<int32_t>(1).put<int32_t>(2);
  auto gguf = read(b);
  ASSERT_TRUE(gguf.ok());
  EXPECT_EQ(gguf->string("n").status().message(),
            "test.gguf: at byte 24, key 'n': u32 instead of a string");
  EXPECT_EQ(gguf->integer("list").status().code(), Code::corrupt);
  EXPECT_EQ(gguf->integer("none").status().code(), Code::not_found);
  EXPECT_EQ(gguf->integer_or("none", 5).value(), 5);
  EXPECT_EQ(gguf->string_or("n", "x").status().code(), Code::corrupt);
  EXPECT_EQ(gguf->find("list")->integer(1), 2);
  EXPECT_EQ(gguf->find("list")->integer(2), std::nullopt);
}

TEST(Gguf, FindsTensors) {
  GgufBytes b;
  b.begin(3, 0)
      .tensor("w", {64, 3}, kQ4_0, 0)
      .tensor("b", {3}, kF32, 128)
      .tensor("x", {3}, 99, 160);
  b.data(192);
  auto gguf = read(b);
  ASSERT_TRUE(gguf.ok()) << gguf.status().message();
  const GgufTensor* w = gguf->find_tensor("w");
  ASSERT_NE(w, nullptr);
  EXPECT_EQ(w->shape, (std::vector<int64_t>{3, 64}));
  EXPECT_EQ(w->bytes, 3u * 2 * 18);
  EXPECT_EQ(w->offset % 32, 0u);
  EXPECT_EQ(static_cast<int>(*w->data), 0x11);
  EXPECT_EQ(gguf->find_tensor("b")->data - w->data, 128);
  EXPECT_EQ(gguf_tensor_type_name(gguf->find_tensor("x")->type_id), "unknown type 99");
  EXPECT_EQ(gguf->find_tensor("x")->bytes, 0u);
  EXPECT_EQ(gguf->find_tensor("y"), nullptr);
}

TEST(Gguf, RefusesWhatIsNotOne) {
  expect_refused(GgufBytes(), "the file ends inside the magic number");
  expect_refused(GgufBytes().put<uint64_t>(1), "does not start with 'GGUF'");
  for (const uint32_t version : {0u, 1u, 4u, 0x80000000u})
    expect_refused(GgufBytes().begin(0, 0, version), "GGUF version");
  expect_refused(GgufBytes().begin(0, 0, 0x03000000), "big-endian");
  EXPECT_EQ(read(GgufBytes().begin(0, 0, 0x03000000)).status().code(), Code::unsupported);
}

TEST(Gguf, RefusesCountsThatCannotBe) {
  expect_refused(GgufBytes().begin(1, 0), "1 tensors in 0 bytes");
  expect_refused(GgufBytes().begin(0, ~uint64_t{0}).data(1000), "keys in");
  expect_refused(GgufBytes().begin(1 << 17, 0).data(1 << 23), "131072 tensors");
  expect_refused(GgufBytes().begin(0, 1).text(std::string(70000, 'k')).data(9), "70000 bytes long");
  GgufBytes long_string;
  long_string.begin(0, 1).key("s", GgufType::string).put(~uint64_t{0}).data(64);
  expect_refused(long_string, "key 's': a string is 18446744073709551615 bytes long");
  GgufBytes long_array;
  long_array.begin(0, 1).array("a", GgufType::f64, uint64_t{1} << 61).data(64);
  expect_refused(long_array, "elements of f64 in the");
  GgufBytes many_strings;
  many_strings.begin(0, 1).array("a", GgufType::string, 1000).data(64);
  expect_refused(many_strings, "1000 elements of string");
}

TEST(Gguf, RefusesBadKeys) {
  expect_refused(GgufBytes().begin(0, 1).text("").data(64), "key 1 of 1: a key is empty");
  expect_refused(GgufBytes().begin(0, 1).text("a\xff").data(64), "'a\\xff' is not UTF-8");
  expect_refused(GgufBytes().begin(0, 2).u32("k", 1).u32("k", 2), "key 'k' occurs twice");
  GgufBytes type;
  type.begin(0, 1).text("k").put<uint32_t>(13).data(64);
  expect_refused(type, "value type 13");
  GgufBytes nested;
  nested.begin(0, 1).array("k", GgufType::array, 1).data(64);
  expect_refused(nested, "array of arrays");
}

TEST(Gguf, RefusesBadAlignment) {
  for (const uint32_t bad : {0u, 1u, 4u, 24u, 0xffffffffu})
    expect_refused(GgufBytes().begin(0, 1).u32("general.alignment", bad), "general.alignment is");
  GgufBytes type;
  type.begin(0, 1).key("general.alignment", GgufType::u64).put<uint64_t>(32);
  expect_refused(type, "not a u32");
  GgufBytes wide;
  wide.begin(1, 1).u32("general.alignment", 4096).tensor("t", {1}, kF32, 0).data(4, 4096);
  EXPECT_EQ(error_of(wide), "");
}

GgufBytes with_tensor(std::string_view name, std::vector<int64_t> dims, uint32_t type,
                      uint64_t offset) {
  return GgufBytes().begin(1, 0).tensor(name, std::move(dims), type, offset).data(4096);
}

TEST(Gguf, RefusesBadTensors) {
  EXPECT_EQ(error_of(with_tensor("t", {32, 4}, kQ4_0, 0)), "");
  expect_refused(with_tensor("", {32}, kF32, 0), "name is empty");
  expect_refused(with_tensor(std::string(64, 'n'), {32}, kF32, 0), "64 bytes long");
  expect_refused(with_tensor("t\xc0", {32}, kF32, 0), "is not UTF-8");
  expect_refused(with_tensor("t", {}, kF32, 0), "0 dimensions");
  expect_refused(with_tensor("t", {1, 1, 1, 1, 1}, kF32, 0), "5 dimensions");
  expect_refused(with_tensor("t", {0}, kF32, 0), "a dimension of 0");
  expect_refused(with_tensor("t", {-1}, kF32, 0), "a dimension of -1");
  expect_refused(with_tensor("t", {1LL << 40, 1LL << 40}, kF32, 0), "overflows");
  expect_refused(with_tensor("t", {1LL << 62}, 28, 0), "overflows");
  expect_refused(with_tensor("t", {1LL << 60, 1}, kF32, 0), "reach past");
  expect_refused(with_tensor("t", {33}, kQ4_0, 0), "not whole blocks of 32");
  expect_refused(with_tensor("t", {32}, kF32, 16), "not a multiple of 32");
  expect_refused(with_tensor("t", {32}, kF32, 4096), "reach past the end of the file");
  expect_refused(with_tensor("t", {32}, kF32, ~uint64_t{31}), "reach past the end of the file");
  expect_refused(with_tensor("t", {32}, 99, 8192), "reach past the end of the file");
}

TEST(Gguf, RefusesOverlapsAndDuplicates) {
  GgufBytes overlap;
  overlap.begin(2, 0).tensor("a", {64}, kF32, 0).tensor("b", {8}, kF32, 224).data(512);
  expect_refused(overlap, "tensor 'b': its data overlaps that of 'a'");
  GgufBytes twice;
  twice.begin(2, 0).tensor("a", {8}, kF32, 0).tensor("a", {8}, kF32, 32).data(512);
  expect_refused(twice, "tensor 'a' occurs twice");
}

GgufBytes small_model() {
  GgufBytes b;
  b.begin(2, 3).u32("n", 7).string("s", "text");
  b.array("a", GgufType::string, 2).text("x").text("yz");
  return b.tensor("w", {32, 2}, kQ4_0, 0).tensor("b", {4}, kF32, 64).data(80);
}

TEST(Gguf, RefusesEveryTruncation) {
  const GgufBytes whole = small_model();
  ASSERT_EQ(error_of(whole), "");
  for (size_t n = 0; n < whole.str().size(); ++n) {
    const auto gguf = Gguf::read(whole.span().first(n), "cut.gguf");
    ASSERT_FALSE(gguf.ok()) << n;
    EXPECT_TRUE(gguf.status().message().starts_with("cut.gguf: at byte")) << n;
  }
}

TEST(Gguf, SurvivesChangedBytes) {
  const std::string whole = small_model().str();
  Rng rng(1);
  for (int i = 0; i < 20000; ++i) {
    std::string changed = whole;
    for (int j = 0; j < 3; ++j)
      changed[rng.below(changed.size())] = static_cast<char>(rng.next_u32());
    (void)Gguf::read(std::as_bytes(std::span(changed)), "changed.gguf");
  }
}

// Split models live in files: their names count.
class GgufSplit : public ::testing::Test {
 protected:
  void SetUp() override { std::filesystem::create_directories(folder_); }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::string write(const std::string& name, const GgufBytes& bytes) const {
    const std::string path = folder_ / name;
    std::ofstream(path, std::ios::binary) << bytes.str();
    return path;
  }
  static GgufBytes part(uint16_t no, uint16_t count, int32_t n_tensors, const std::string& tensor) {
    GgufBytes b;
    b.begin(1, 3).key("split.no", GgufType::u16).put(no).key("split.count", GgufType::u16);
    b.put(count).key("split.tensors.count", GgufType::i32).put(n_tensors);
    return b.tensor(tensor, {4}, kF32, 0).data(16);
  }
  static std::string error_of(const std::string& path) {
    const auto gguf = Gguf::open(path);
    return gguf.ok() ? "" : std::string(gguf.status().message());
  }

  const std::filesystem::path folder_ =
      std::filesystem::path(::testing::TempDir()) / fmt::format("gguf_split_{}", getpid());
};

TEST_F(GgufSplit, IsReadAsOneModel) {
  const std::string first = write("m-00001-of-00002.gguf", part(0, 2, 2, "a"));
  const std::string second = write("m-00002-of-00002.gguf", part(1, 2, 2, "b"));
  auto gguf = Gguf::open(first);
  ASSERT_TRUE(gguf.ok()) << gguf.status().message();
  EXPECT_EQ(gguf->n_parts(), 2u);
  EXPECT_EQ(gguf->tensors().size(), 2u);
  EXPECT_EQ(gguf->find_tensor("b")->part, 1u);
  EXPECT_EQ(gguf->find_tensor("b")->data[0], std::byte{0x11});
  EXPECT_EQ(gguf->file_bytes(),
            std::filesystem::file_size(first) + std::filesystem::file_size(second));
  gguf->drop({gguf->find_tensor("b")->data, gguf->find_tensor("b")->bytes});
  EXPECT_EQ(gguf->find_tensor("b")->data[0], std::byte{0x11});
  EXPECT_NE(error_of(second).find("open the one whose name ends in -00001-of-00002.gguf"),
            std::string::npos);
}

// Another process cuts the second file while both are open.
TEST_F(GgufSplit, SaysWhichPartWasCutShort) {
  const std::string first = write("m-00001-of-00002.gguf", part(0, 2, 2, "a"));
  GgufBytes large;
  large.begin(1, 3).key("split.no", GgufType::u16).put<uint16_t>(1);
  large.key("split.count", GgufType::u16).put<uint16_t>(2);
  large.key("split.tensors.count", GgufType::i32).put<int32_t>(2);
  large.tensor("b", {1 << 18}, kF32, 0).data(1 << 20);
  const std::string second = write("m-00002-of-00002.gguf", large);
  auto gguf = Gguf::open(first);
  ASSERT_TRUE(gguf.ok()) << gguf.status().message();
  EXPECT_FALSE(gguf->is_damaged());
  EXPECT_TRUE(gguf->check().ok());
  std::filesystem::resize_file(second, 1000);
  const GgufTensor& b = *gguf->find_tensor("b");
  EXPECT_EQ(b.data[b.bytes - 1], std::byte{0});
  EXPECT_TRUE(gguf->is_damaged());
  EXPECT_EQ(gguf->check().code(), Code::io_error);
  EXPECT_NE(gguf->check().message().find("m-00002-of-00002.gguf was truncated"),
            std::string_view::npos);
  EXPECT_EQ(gguf->find_tensor("a")->data[0], std::byte{0x11});
  EXPECT_EQ(gguf->integer("split.count").value(), 2);
}

// Metadata is a copy: a file that is emptied, or written over, changes none of it.
TEST_F(GgufSplit, MetadataOutlivesTheFile) {
  GgufBytes b;
  b.begin(0, 1).array("tokens", GgufType::string, 3).text("one").text("two").text("three");
  const std::string path = write("one.gguf", b);
  auto gguf = Gguf::open(path);
  ASSERT_TRUE(gguf.ok());
  std::ofstream(path, std::ios::binary) << std::string(b.str().size(), '\xff');
  EXPECT_EQ(gguf->find("tokens")->strings()[2], "three");
  std::filesystem::resize_file(path, 0);
  EXPECT_EQ(gguf->find("tokens")->strings()[0], "one");
  EXPECT_FALSE(gguf->is_damaged());
  EXPECT_FALSE(gguf->check().ok());
}

TEST_F(GgufSplit, RefusesPartsThatDoNotFit) {
  const std::string first = write("m-00001-of-00002.gguf", part(0, 2, 2, "a"));
  EXPECT_NE(error_of(first).find("m-00002-of-00002.gguf"), std::string::npos) << "is missing";
  write("m-00002-of-00002.gguf", part(1, 3, 2, "b"));
  EXPECT_NE(error_of(first).find("part 2 of 3"), std::string::npos);
  write("m-00002-of-00002.gguf", part(1, 2, 2, "a"));
  EXPECT_NE(error_of(first).find("'a' is also in another file"), std::string::npos);
  write("m-00002-of-00002.gguf", GgufBytes().begin(0, 0));
  EXPECT_NE(error_of(first).find("'split.no' is missing"), std::string::npos);
  write("m-00001-of-00002.gguf", part(0, 2, 3, "a"));
  write("m-00002-of-00002.gguf", part(1, 2, 3, "b"));
  EXPECT_NE(error_of(first).find("have 2 tensors"), std::string::npos);
}

}  // namespace
}  // namespace millrace
