#include "serve/keys.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <iterator>

#include "hub/digest.h"
#include "serve/http_text.h"

namespace millrace::serve {
namespace {

constexpr size_t kMaxFileBytes = 1 << 20;
constexpr size_t kMaxNameBytes = 64;
constexpr size_t kGoodKeyBytes = 16;

std::string_view trim(std::string_view text) {
  constexpr std::string_view kSpace = " \t\r\n";
  const size_t first = text.find_first_not_of(kSpace);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kSpace) - first + 1);
}

bool is_key(std::string_view text) {
  return !text.empty() &&
         std::all_of(text.begin(), text.end(), [](char c) { return c > ' ' && c < 0x7f; });
}

// Looks at every digit, so that the time tells nothing of how many were right.
bool is_same_digest(const std::string& a, const std::string& b) {
  unsigned char difference = 0;
  for (size_t i = 0; i < a.size(); ++i) difference |= static_cast<unsigned char>(a[i] ^ b[i]);
  return difference == 0;
}

}  // namespace

Status Keys::add_entry(Entry entry, std::string_view where) {
  for (const Entry& other : entries_)
    if (other.digest == entry.digest)
      return error(Code::invalid_argument, "{}: this key is there twice (tenant '{}')", where,
                   other.holder.tenant);
  entries_.push_back(std::move(entry));
  return {};
}

Status Keys::add_line(std::string_view line, std::string_view where) {
  Entry entry;
  if (line.starts_with("admin ") || line.starts_with("admin\t")) {
    entry.holder.is_admin = true;
    line = trim(line.substr(6));
  }
  const size_t colon = line.find(':');
  const std::string_view name = colon == std::string_view::npos ? "" : trim(line.substr(0, colon));
  const std::string_view key =
      colon == std::string_view::npos ? line : trim(line.substr(colon + 1));
  const bool named_well =
      colon == std::string_view::npos || (is_token(name) && name.size() <= kMaxNameBytes);
  if (!named_well || !is_key(key) || line == "admin")
    return error(Code::invalid_argument,
                 "{}: not a key; write KEY or NAME:KEY, with 'admin ' before it for an admin",
                 where);
  entry.digest = sha256_of(key);
  entry.holder.tenant = name.empty() ? "key-" + entry.digest.substr(0, 8) : std::string(name);
  if (key.size() < kGoodKeyBytes)
    warnings_.push_back(fmt::format("{}: the key of '{}' is shorter than {} characters", where,
                                    entry.holder.tenant, kGoodKeyBytes));
  return add_entry(std::move(entry), where);
}

Result<Keys> Keys::from_text(std::string_view text, std::string_view where) {
  Keys out;
  for (int number = 1; !text.empty(); ++number) {
    const size_t end = std::min(text.find_first_of("\n,"), text.size());
    const std::string_view line = trim(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.empty() || line.front() == '#') continue;
    MILLRACE_TRY(out.add_line(line, fmt::format("{}, line {}", where, number)));
  }
  if (out.empty()) return error(Code::invalid_argument, "{} has no keys", where);
  return out;
}

Result<Keys> Keys::from_file(const std::string& path) {
  struct stat info {};
  if (stat(path.c_str(), &info) != 0)
    return error(Code::not_found, "key file {}: {}", path, std::strerror(errno));
  if (!S_ISREG(info.st_mode) || static_cast<size_t>(info.st_size) > kMaxFileBytes)
    return error(Code::invalid_argument, "key file {}: not a file of keys", path);
  std::ifstream in(path, std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(in), {}};
  if (!in) return error(Code::io_error, "key file {} cannot be read", path);
  MILLRACE_ASSIGN(Keys out, from_text(text, "key file " + path));
  if ((info.st_mode & (S_IRWXG | S_IRWXO)) != 0)
    out.warnings_.push_back(
        fmt::format("key file {} is open to other users; run: chmod 600 {}", path, path));
  return out;
}

Status Keys::add(Keys other) {
  for (Entry& entry : other.entries_) MILLRACE_TRY(add_entry(std::move(entry), "keys"));
  std::move(other.warnings_.begin(), other.warnings_.end(), std::back_inserter(warnings_));
  return {};
}

const Keys::Holder* Keys::find(std::string_view key) const {
  const std::string digest = sha256_of(key);
  const Holder* found = nullptr;
  for (const Entry& entry : entries_)
    if (is_same_digest(entry.digest, digest)) found = &entry.holder;
  return found;
}

const Keys::Holder* Keys::find(const HttpRequest& request) const {
  constexpr std::string_view kBearer = "bearer ";
  const std::string_view authorization = request.header("authorization");
  const Holder* found = nullptr;
  if (equals_ignoring_case(authorization.substr(0, kBearer.size()), kBearer))
    found = find(trim(authorization.substr(kBearer.size())));
  if (found == nullptr && !request.header("x-api-key").empty())
    found = find(trim(request.header("x-api-key")));
  return found;
}

void remove_keys(HttpHeaders& headers) {
  std::erase_if(headers, [](const auto& header) {
    return header.first == "authorization" || header.first == "x-api-key" ||
           header.first == "proxy-authorization" || header.first == "cookie";
  });
}

}  // namespace millrace::serve
