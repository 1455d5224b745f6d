#include "kernels/profile.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>

#include "base/json_text.h"

namespace millrace {
namespace {

using nlohmann::json;

constexpr std::string_view kFormatName = "millrace-profile";
constexpr int kVersion = 1;
// A profile of every op at a thousand shapes is under 2 MB.
constexpr size_t kMaxBytes = size_t{16} << 20;
constexpr size_t kMaxText = 512;  // of an op, a key or a variant

Status bad(std::string_view source, std::string_view place, std::string_view what) {
  return error(Code::corrupt, "{}: {}: {}", source, place, what);
}

Result<std::string> text_at(const json& object, const char* name, std::string_view source,
                            std::string_view place) {
  const auto found = object.find(name);
  const std::string at = fmt::format("{}{}", place, name);
  if (found == object.end()) return bad(source, at, "missing");
  if (!found->is_string()) return bad(source, at, "not a string");
  auto text = found->get<std::string>();
  if (text.empty() || text.size() > kMaxText)
    return bad(source, at, fmt::format("{} characters (1 to {} expected)", text.size(), kMaxText));
  return text;
}

Result<json> parse_json(std::string_view text, std::string_view source) {
  try {
    return json::parse(text);
  } catch (const json::exception& e) {
    return error(Code::corrupt, "{}: not JSON: {}", source, e.what());
  }
}

Status check_head(const json& document, std::string_view source) {
  if (!document.is_object()) return bad(source, "document", "not an object");
  MILLRACE_ASSIGN(const std::string format, text_at(document, "format", source, ""));
  if (format != kFormatName)
    return bad(source, "format", fmt::format("'{}', not '{}'", format, kFormatName));
  const auto version = document.find("version");
  if (version == document.end() || !version->is_number_integer())
    return bad(source, "version", "not an integer");
  if (*version != kVersion)
    return error(Code::unsupported, "{}: version {}; this build reads {}", source,
                 json_text(*version), kVersion);
  const auto entries = document.find("entries");
  if (entries == document.end() || !entries->is_array())
    return bad(source, "entries", "not an array");
  return {};
}

Status io_failure(std::string_view doing, const std::filesystem::path& path) {
  return error(Code::io_error, "cannot {} {}: {}", doing, path.string(), std::strerror(errno));
}

Status write_all(int fd, std::string_view text, const std::filesystem::path& path) {
  while (!text.empty()) {
    const ssize_t n = ::write(fd, text.data(), text.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return io_failure("write", path);
    text.remove_prefix(static_cast<size_t>(n));
  }
  return ::fsync(fd) == 0 ? Status() : io_failure("write", path);
}

}  // namespace

std::string_view Profile::variant_for(std::string_view op, std::string_view key) const {
  const auto found = entries_.find({std::string(op), std::string(key)});
  return found == entries_.end() ? std::string_view() : std::string_view(found->second);
}

bool Profile::add(std::string op, std::string key, std::string variant) {
  return entries_.emplace(std::pair{std::move(op), std::move(key)}, std::move(variant)).second;
}

Result<Profile> Profile::parse(std::string_view text, std::string_view source) {
  if (text.size() > kMaxBytes)
    return error(Code::corrupt, "{}: {} bytes; a profile has at most {}", source, text.size(),
                 kMaxBytes);
  MILLRACE_ASSIGN(const json document, parse_json(text, source));
  MILLRACE_TRY(check_head(document, source));
  Profile profile;
  MILLRACE_ASSIGN(profile.machine, text_at(document, "machine", source, ""));
  MILLRACE_ASSIGN(profile.written, text_at(document, "written", source, ""));
  size_t i = 0;
  for (const json& entry : document["entries"]) {
    const std::string place = fmt::format("entries[{}]", i++);
    if (!entry.is_object()) return bad(source, place, "not an object");
    MILLRACE_ASSIGN(std::string op, text_at(entry, "op", source, place + "."));
    MILLRACE_ASSIGN(std::string key, text_at(entry, "key", source, place + "."));
    MILLRACE_ASSIGN(std::string variant, text_at(entry, "variant", source, place + "."));
    if (!profile.add(std::move(op), std::move(key), std::move(variant)))
      return bad(source, place, "a second entry for the same op and key");
  }
  return profile;
}

Result<Profile> Profile::read(const std::filesystem::path& path) {
  std::error_code failure;
  if (!std::filesystem::is_regular_file(path, failure))
    return error(Code::not_found, "no profile file at {}", path.string());
  const auto size = std::filesystem::file_size(path, failure);
  if (failure || size > kMaxBytes)
    return error(Code::corrupt, "{}: a profile has at most {} bytes", path.string(), kMaxBytes);
  std::ifstream in(path, std::ios::binary);
  std::string text(size, '\0');
  if (!in.read(text.data(), static_cast<std::streamsize>(size))) return io_failure("read", path);
  return parse(text, path.string());
}

std::string Profile::to_json() const {
  auto entries = json::array();
  for (const auto& [name, variant] : entries_)
    entries.push_back({{"op", name.first}, {"key", name.second}, {"variant", variant}});
  const json document = {{"format", kFormatName},
                         {"version", kVersion},
                         {"machine", machine},
                         {"written", written},
                         {"entries", entries}};
  return json_text(document, 1) + "\n";
}

Status Profile::write(const std::filesystem::path& path) const {
  const std::filesystem::path part = path.string() + ".part";
  const int fd = ::open(part.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (fd < 0) return io_failure("create", part);
  Status status = write_all(fd, to_json(), part);
  ::close(fd);
  if (status.ok() && ::rename(part.c_str(), path.c_str()) != 0) status = io_failure("write", path);
  if (!status.ok()) ::unlink(part.c_str());
  return status;
}

}  // namespace millrace
