#include "serve/keys.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <fstream>

namespace millrace::serve {
namespace {

TEST(Keys, ReadsNamesAndAdmins) {
  auto keys = Keys::from_text(
      "# who may\n\nalice:sk-alice-0123456789\r\n  admin ops : sk-ops-0123456789ab \n"
      "sk-nobody-0123456789,bob:with:colons-0123456",
      "test");
  ASSERT_TRUE(keys.ok()) << keys.status().message();
  const auto* alice = keys->find("sk-alice-0123456789");
  ASSERT_NE(alice, nullptr);
  EXPECT_EQ(alice->tenant, "alice");
  EXPECT_FALSE(alice->is_admin);
  ASSERT_NE(keys->find("sk-ops-0123456789ab"), nullptr);
  EXPECT_TRUE(keys->find("sk-ops-0123456789ab")->is_admin);
  const auto* unnamed = keys->find("sk-nobody-0123456789");
  ASSERT_NE(unnamed, nullptr);
  EXPECT_EQ(unnamed->tenant.substr(0, 4), "key-");
  EXPECT_EQ(unnamed->tenant.size(), 12u);
  EXPECT_EQ(unnamed->tenant.find("nobody"), std::string::npos);
  EXPECT_NE(keys->find("with:colons-0123456"), nullptr);
  EXPECT_EQ(keys->find(""), nullptr);
  EXPECT_EQ(keys->find("sk-alice-012345678"), nullptr);
  EXPECT_TRUE(keys->warnings().empty());
}

TEST(Keys, RefusesWhatIsNotAKeyWithoutNamingIt) {
  for (const std::string_view bad : {"", "# nothing", "name:", "two words", "bad name:secret",
                                     "secret-1:x\nsecret-1:x", "admin "}) {
    const auto keys = Keys::from_text(bad, "test");
    ASSERT_FALSE(keys.ok()) << bad;
    EXPECT_EQ(keys.status().message().find("secret\n"), std::string::npos);
  }
  const auto twice = Keys::from_text("a:hush-hush-hush-hush\nb:hush-hush-hush-hush", "test");
  ASSERT_FALSE(twice.ok());
  EXPECT_EQ(twice.status().message().find("hush"), std::string::npos);
}

TEST(Keys, WarnsOfShortKeysAndOpenFiles) {
  const std::string path = testing::TempDir() + "keys_test.txt";
  std::ofstream(path) << "a:short\n";
  chmod(path.c_str(), 0644);
  const auto open = Keys::from_file(path);
  ASSERT_TRUE(open.ok());
  EXPECT_EQ(open.value().warnings().size(), 2u);
  for (const std::string& warning : open.value().warnings())
    EXPECT_EQ(warning.find(":short"), std::string::npos);
  chmod(path.c_str(), 0600);
  EXPECT_EQ(Keys::from_file(path).value().warnings().size(), 1u);
  unlink(path.c_str());
  EXPECT_FALSE(Keys::from_file(path).ok());
  EXPECT_FALSE(Keys::from_file(testing::TempDir()).ok());
}

TEST(Keys, AddsUp) {
  auto keys = Keys::from_text("a:sk-alice-0123456789", "file");
  ASSERT_TRUE(keys.ok());
  ASSERT_TRUE(keys->add(*Keys::from_text("b:sk-bob-01234567890", "environment")).ok());
  EXPECT_EQ(keys->find("sk-bob-01234567890")->tenant, "b");
  EXPECT_FALSE(keys->add(*Keys::from_text("c:sk-bob-01234567890", "environment")).ok());
}

TEST(Keys, FindsThemInARequestAndRemovesThem) {
  const auto keys = Keys::from_text("a:sk-alice-0123456789", "test");
  HttpRequest request{.headers = {{"authorization", "Bearer something-else"},
                                  {"x-api-key", "sk-alice-0123456789"},
                                  {"accept", "*/*"}}};
  ASSERT_NE(keys.value().find(request), nullptr);
  remove_keys(request.headers);
  ASSERT_EQ(request.headers.size(), 1u);
  EXPECT_EQ(keys.value().find(request), nullptr);
}

}  // namespace
}  // namespace millrace::serve
