#include "lab/posts/scrub.h"

#include <pwd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>

#include "lab/posts/text.h"

namespace millrace::lab {
namespace {

struct Own {
  std::string host, user, home;
};

// A name of a few letters or a common word is no secret and would be found everywhere.
std::string if_telling(std::string name) {
  constexpr std::array kCommon = {"root",  "user", "localhost", "build", "debian",
                                  "admin", "home", "work",      "test",  "runner"};
  const bool is_common = std::find(kCommon.begin(), kCommon.end(), name) != kCommon.end();
  return name.size() < 4 || is_common ? "" : name;
}

const Own& own() {
  static const Own found = [] {
    Own out;
    char host[256] = "";
    if (gethostname(host, sizeof host - 1) == 0) out.host = if_telling(host);
    if (const passwd* entry = getpwuid(getuid()); entry != nullptr) {
      out.user = if_telling(entry->pw_name);
      out.home = entry->pw_dir;
    }
    if (out.home.size() < 4) out.home.clear();
    return out;
  }();
  return found;
}

bool is_secret_char(char c) {
  return is_word(c) || c == '-' || c == '+' || c == '=' || c == '.';
}
bool is_path_char(char c) {
  return is_word(c) || c == '-' || c == '+' || c == '.' || c == '/' || c == '@' || c == '~';
}
bool is_host_char(char c) {
  return is_word(c) || c == '-' || c == '.';
}

template <class Is>
size_t length_of(std::string_view text, size_t at, Is is) {
  size_t n = 0;
  while (at + n < text.size() && is(text[at + n])) ++n;
  return n;
}

bool starts_word(std::string_view text, size_t at) {
  return at == 0 || !is_word(text[at - 1]);
}

size_t key_at(std::string_view text, size_t at) {
  constexpr std::array<std::string_view, 13> kPrefixes = {
      "sk-", "hf_",  "ghp_", "gho_", "ghs_",  "github_pat_", "glpat-",
      "xox", "AKIA", "ASIA", "AIza", "pypi-", "eyJ"};
  if (!starts_word(text, at)) return 0;
  for (const std::string_view prefix : kPrefixes) {
    if (!text.substr(at).starts_with(prefix)) continue;
    if (const size_t n = length_of(text, at, is_secret_char); n >= prefix.size() + 12) return n;
  }
  if (text.substr(at).starts_with("-----BEGIN ")) return text.size() - at;
  return 0;
}

// "password=...", "token: ...", "Bearer ...".
size_t named_secret_at(std::string_view text, size_t at) {
  constexpr std::array<std::string_view, 6> kNames = {"password", "passwd",  "secret",
                                                      "token",    "api_key", "apikey"};
  if (!starts_word(text, at)) return 0;
  const auto value = [&](size_t from, size_t least) -> size_t {
    const size_t n = length_of(text, from, is_secret_char);
    return n >= least ? from + n - at : 0;
  };
  if (text.substr(at).starts_with("Bearer ")) return value(at + 7, 8);
  for (const std::string_view name : kNames) {
    std::string word(text.substr(at, name.size()));
    for (char& c : word) c = static_cast<char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
    const size_t end = at + name.size();
    if (word == name && end < text.size() && (text[end] == '=' || text[end] == ':')) {
      const size_t from = end + 1 + (end + 1 < text.size() && text[end + 1] == ' ' ? 1 : 0);
      if (const size_t n = value(from, text[end] == '=' ? 1 : 6); n > 0) return n;
    }
  }
  return 0;
}

// 32 and more characters of base 64 with letters of both cases and digits.
size_t random_at(std::string_view text, size_t at) {
  if (at > 0 && is_secret_char(text[at - 1])) return 0;
  const size_t n = length_of(text, at, [](char c) { return is_word(c) || c == '-' || c == '+'; });
  if (n < 32) return 0;
  const std::string_view word = text.substr(at, n);
  const auto has = [&](auto is) { return std::any_of(word.begin(), word.end(), is); };
  const auto n_digits = std::count_if(word.begin(), word.end(), is_digit);
  const bool is_mixed = has([](char c) { return c >= 'a' && c <= 'z'; }) &&
                        has([](char c) { return c >= 'A' && c <= 'Z'; }) && n_digits >= 3;
  const bool is_plain = word.find('-') != word.npos && n_digits < 6;
  return is_mixed && !is_plain ? n : 0;
}

size_t path_at(std::string_view text, size_t at) {
  constexpr std::array<std::string_view, 15> kRoots = {
      "/home/", "/root/", "/Users/", "/work/",    "/tmp/", "/mnt/", "/srv/",      "/data/",
      "/opt/",  "/var/",  "/media/", "/scratch/", "/etc/", "/nix/", "/workspace/"};
  if (at > 0 && (is_path_char(text[at - 1]) && text[at - 1] != '=')) return 0;
  const std::string_view rest = text.substr(at);
  const auto is_root = [&](std::string_view root) { return rest.starts_with(root); };
  const bool is_own = !own().home.empty() && rest.starts_with(own().home);
  const bool is_home =
      rest.starts_with("~/") || (rest.size() > 2 && rest[1] == ':' && rest[2] == '\\');  // C:\...
  if (!is_own && !is_home && std::none_of(kRoots.begin(), kRoots.end(), is_root)) return 0;
  return std::max<size_t>(
      1, length_of(text, at, [](char c) { return is_path_char(c) || c == '\\' || c == ':'; }));
}

bool is_address(std::string_view word) {
  int n_parts = 0, n_digits = 0;
  for (const char c : word) {
    if (c == '.') {
      if (n_digits == 0) return false;
      ++n_parts;
      n_digits = 0;
    } else if (!is_digit(c) || ++n_digits > 3) {
      return false;
    }
  }
  return n_parts == 3 && n_digits > 0;
}

size_t host_at(std::string_view text, size_t at) {
  if (at > 0 && is_host_char(text[at - 1])) return 0;
  const size_t n = length_of(text, at, is_host_char);
  std::string_view word = text.substr(at, n);
  while (!word.empty() && (word.back() == '.' || word.back() == '-')) word.remove_suffix(1);
  if (word.empty()) return 0;
  if (at + n < text.size() && text[at + n] == '@') {  // user@host, an address of a person
    const size_t more = length_of(text, at + n + 1, is_host_char);
    if (more > 0) return n + 1 + more;
  }
  for (const std::string_view tail : {".local", ".internal", ".lan", ".corp", ".intra", ".home"})
    if (word.size() > tail.size() && word.ends_with(tail)) return word.size();
  const bool is_loopback = word == "127.0.0.1" || word == "0.0.0.0";
  return is_address(word) && !is_loopback ? word.size() : 0;
}

size_t own_name_at(std::string_view text, size_t at) {
  for (const std::string& name : {own().host, own().user}) {
    if (name.empty() || !text.substr(at).starts_with(name) || !starts_word(text, at)) continue;
    const size_t end = at + name.size();
    if (end == text.size() || !is_word(text[end])) return name.size();
  }
  return 0;
}

}  // namespace

std::vector<Private> find_private(std::string_view text) {
  struct Rule {
    size_t (*at)(std::string_view, size_t);
    const char* what;
  };
  constexpr std::array<Rule, 6> kRules = {{{key_at, "a key"},
                                           {named_secret_at, "a password or token"},
                                           {path_at, "a path of a machine"},
                                           {host_at, "the name or address of a host or person"},
                                           {own_name_at, "this host's or user's name"},
                                           {random_at, "what looks like a key"}}};
  std::vector<Private> out;
  for (size_t at = 0; at < text.size();) {
    size_t n = 0;
    for (const Rule& rule : kRules) {
      n = std::min(rule.at(text, at), text.size() - at);
      if (n == 0) continue;
      out.push_back({at, n, rule.what});
      break;
    }
    at += n == 0 ? 1 : n;
  }
  return out;
}

std::string scrubbed(std::string_view text) {
  std::string out;
  size_t at = 0;
  for (const Private& found : find_private(text)) {
    out += text.substr(at, found.at - at);
    out += "[removed]";
    at = found.at + found.n;
  }
  return out + std::string(text.substr(at));
}

std::string code_text(std::string_view text) {
  std::string out = scrubbed(one_line(text));
  std::erase_if(out, [](char c) { return std::string_view("`{}<>").find(c) != std::string::npos; });
  return out;
}

}  // namespace millrace::lab
