#include "serve/http_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <ctime>
#include <iterator>

#include "serve/random.h"

namespace millrace::serve {
namespace {

constexpr size_t kMaxIdBytes = 128;

char lower(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

bool is_control(char c) {
  return static_cast<unsigned char>(c) < ' ' || c == 0x7f;
}

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (lower(c) >= 'a' && lower(c) <= 'f') return lower(c) - 'a' + 10;
  return -1;
}

std::string_view trim(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  return text;
}

std::string_view reason(int status) {
  static constexpr std::pair<int, std::string_view> kReasons[] = {
      {200, "OK"},
      {201, "Created"},
      {202, "Accepted"},
      {204, "No Content"},
      {301, "Moved Permanently"},
      {302, "Found"},
      {304, "Not Modified"},
      {307, "Temporary Redirect"},
      {308, "Permanent Redirect"},
      {400, "Bad Request"},
      {401, "Unauthorized"},
      {403, "Forbidden"},
      {404, "Not Found"},
      {405, "Method Not Allowed"},
      {408, "Request Timeout"},
      {409, "Conflict"},
      {411, "Length Required"},
      {413, "Content Too Large"},
      {414, "URI Too Long"},
      {415, "Unsupported Media Type"},
      {417, "Expectation Failed"},
      {421, "Misdirected Request"},
      {422, "Unprocessable Content"},
      {429, "Too Many Requests"},
      {431, "Request Header Fields Too Large"},
      {500, "Internal Server Error"},
      {501, "Not Implemented"},
      {503, "Service Unavailable"},
      {505, "HTTP Version Not Supported"},
  };
  for (const auto& [code, text] : kReasons)
    if (code == status) return text;
  return "Status";
}

// In C's locale whatever the process has: strftime would translate the names.
std::string http_date() {
  static constexpr std::string_view kDays[] = {"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
  static constexpr std::string_view kMonths[] = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                                 "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
  const std::time_t now = std::time(nullptr);
  std::tm utc{};
  gmtime_r(&now, &utc);
  return fmt::format("{}, {:02} {} {} {:02}:{:02}:{:02} GMT", kDays[utc.tm_wday], utc.tm_mday,
                     kMonths[utc.tm_mon], utc.tm_year + 1900, utc.tm_hour, utc.tm_min, utc.tm_sec);
}

bool is_ours(std::string_view name) {
  static constexpr std::string_view kOurs[] = {"connection", "content-length",    "date",
                                               "keep-alive", "transfer-encoding", "x-request-id"};
  return std::any_of(std::begin(kOurs), std::end(kOurs),
                     [&](std::string_view ours) { return equals_ignoring_case(ours, name); });
}

void append_headers(std::string& out, const HttpHeaders& headers) {
  for (const auto& [name, value] : headers)
    if (is_token(name) && !is_ours(name) && std::none_of(value.begin(), value.end(), is_control))
      fmt::format_to(std::back_inserter(out), "{}: {}\r\n", name, value);
}

bool has_header(const HttpHeaders& headers, std::string_view name) {
  return std::any_of(headers.begin(), headers.end(),
                     [&](const auto& header) { return equals_ignoring_case(header.first, name); });
}

bool climbs(std::string_view path) {
  while (!path.empty()) {
    const size_t end = std::min(path.find('/'), path.size());
    if (path.substr(0, end) == "..") return true;
    path.remove_prefix(std::min(end + 1, path.size()));
  }
  return false;
}

}  // namespace

std::string lower_case(std::string_view text) {
  std::string out(text);
  std::transform(out.begin(), out.end(), out.begin(), lower);
  return out;
}

bool equals_ignoring_case(std::string_view a, std::string_view b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](char x, char y) { return lower(x) == lower(y); });
}

bool list_has(std::string_view list, std::string_view word) {
  while (!list.empty()) {
    const size_t comma = std::min(list.find(','), list.size());
    if (equals_ignoring_case(trim(list.substr(0, comma)), word)) return true;
    list.remove_prefix(std::min(comma + 1, list.size()));
  }
  return false;
}

bool is_token(std::string_view text) {
  constexpr std::string_view kMarks = "!#$%&'*+-.^_`|~";
  return !text.empty() && std::all_of(text.begin(), text.end(), [&](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 ||
           kMarks.find(c) != std::string_view::npos;
  });
}

std::optional<std::string> decode_path(std::string_view path) {
  std::string out;
  out.reserve(path.size());
  for (size_t i = 0; i < path.size(); ++i) {
    char c = path[i];
    if (c == '%') {
      if (i + 2 >= path.size()) return std::nullopt;
      const int high = hex_digit(path[i + 1]), low = hex_digit(path[i + 2]);
      if (high < 0 || low < 0) return std::nullopt;
      c = static_cast<char>(high * 16 + low);
      i += 2;
    }
    if (is_control(c)) return std::nullopt;
    out += c;
  }
  if (climbs(out)) return std::nullopt;
  return out;
}

bool is_request_id(std::string_view text) {
  return !text.empty() && text.size() <= kMaxIdBytes &&
         std::all_of(text.begin(), text.end(), [](char c) { return c > ' ' && c < 0x7f; });
}

std::string make_request_id() {
  return "req_" + random_hex(24);
}

bool has_no_body(int status) {
  return status < 200 || status == 204 || status == 304;
}

std::string reply_head(const ReplyHead& head) {
  static const HttpHeaders kNone;
  const HttpHeaders& headers = head.headers != nullptr ? *head.headers : kNone;
  std::string out =
      fmt::format("HTTP/1.1 {} {}\r\nDate: {}\r\n", head.status, reason(head.status), http_date());
  const auto add = [&out](std::string_view name, std::string_view value) {
    fmt::format_to(std::back_inserter(out), "{}: {}\r\n", name, value);
  };
  if (!head.id.empty()) add("X-Request-Id", head.id);
  if (!head.default_type.empty() && !has_header(headers, "content-type"))
    add("Content-Type", head.default_type);
  append_headers(out, headers);
  if (head.cors != nullptr) append_headers(out, *head.cors);
  add("X-Content-Type-Options", "nosniff");
  if (head.length && !has_no_body(head.status)) add("Content-Length", fmt::to_string(*head.length));
  if (head.is_chunked) add("Transfer-Encoding", "chunked");
  if (head.closes) add("Connection", "close");
  return out += "\r\n";
}

void append_chunk(std::string& out, std::string_view piece) {
  fmt::format_to(std::back_inserter(out), "{:x}\r\n", piece.size());
  out.append(piece).append("\r\n");
}

}  // namespace millrace::serve
