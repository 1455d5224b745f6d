// Any bytes as an HTTP request: the parser ends, and what it makes of them does not depend on how
// the network cut them.
#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/check.h"
#include "serve/http_guard.h"
#include "serve/http_parser.h"

namespace {

using namespace millrace::serve;
using State = RequestParser::State;

constexpr ParserLimits kLimits{
    .header_bytes = 2048, .target_bytes = 256, .n_headers = 16, .body_bytes = 4096};

// As a connection does it: what is not taken is kept and offered again. Returns what is left.
std::string feed(RequestParser& parser, std::string_view bytes, size_t piece) {
  std::string held;
  while (!bytes.empty()) {
    held.append(bytes.substr(0, piece));
    bytes.remove_prefix(std::min(piece, bytes.size()));
    for (;;) {
      const State before = parser.state();
      const size_t n = parser.put(held);
      MILLRACE_CHECK(n <= held.size(), "took {} of {} bytes", n, held.size());
      held.erase(0, n);
      if (n == 0 && parser.state() == before) break;
    }
    // No input makes the parser hold more than its limits.
    const bool ended = parser.state() == State::done || parser.state() == State::failed;
    MILLRACE_CHECK(ended || held.size() < (16 << 10) + piece, "{} bytes are held", held.size());
  }
  MILLRACE_CHECK(parser.request().body.size() <= kLimits.body_bytes, "the body is too large");
  return held;
}

void check_same(RequestParser& a, RequestParser& b) {
  MILLRACE_CHECK(a.state() == b.state(), "another end: {} and {}", a.error().error.message,
                 b.error().error.message);
  if (a.state() != State::done) return;
  MILLRACE_CHECK(a.request().method == b.request().method, "another method");
  MILLRACE_CHECK(a.request().path == b.request().path, "another path");
  MILLRACE_CHECK(a.request().headers == b.request().headers, "other headers");
  MILLRACE_CHECK(a.request().body == b.request().body, "another body");
  MILLRACE_CHECK(a.host() == b.host() && a.keeps_alive() == b.keeps_alive(), "another framing");
}

}  // namespace

// The first byte chooses how the rest is cut.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 1) return 0;
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  RequestParser whole(kLimits), cut(kLimits);
  const std::string rest = feed(whole, bytes, SIZE_MAX);
  const std::string cut_rest = feed(cut, bytes, 1 + data[0] % 64);
  const bool both_ended = whole.state() >= State::done && cut.state() >= State::done;
  // Cut, a malformed header may still be waited for that is refused at once when it comes whole.
  if (both_ended || whole.state() == State::done || cut.state() == State::done)
    check_same(whole, cut);
  if (whole.state() != State::done) return 0;
  MILLRACE_CHECK(rest == cut_rest, "another end of the request");
  const HttpGuard guard({.address = "127.0.0.1", .allowed_origins = {"https://a.example"}});
  (void)guard.check_host(whole.host());
  (void)guard.check_origin(whole.request(), whole.host());
  return 0;
}
