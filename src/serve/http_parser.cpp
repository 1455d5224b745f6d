#include "serve/http_parser.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/beast/http/basic_parser.hpp>
#include <optional>

#include "serve/http_text.h"

namespace millrace::serve {
namespace {

namespace beast = boost::beast;
using beast::error_code;
using State = RequestParser::State;

// A chunk's size line with its extensions, or the trailers behind the last one.
constexpr size_t kMaxChunkLineBytes = 8 << 10;
constexpr size_t kMaxBlankBytes = 4;

std::string_view std_view(beast::string_view text) {
  return {text.data(), text.size()};
}

// "GET / HTTP/2.0": well formed, and a version that we do not speak.
bool names_a_version(std::string_view bytes) {
  const std::string_view line = bytes.substr(0, bytes.find('\r'));
  const size_t at = line.rfind(" HTTP/");
  return at != std::string_view::npos && line.size() == at + 9 && line[at + 7] == '.';
}

}  // namespace

class RequestParser::Impl final : public beast::http::basic_parser<true> {
 public:
  explicit Impl(const ParserLimits& limits) : limits_(limits) {
    header_limit(static_cast<uint32_t>(limits.header_bytes));
    body_limit(limits.body_bytes);
  }

  size_t take(std::string_view bytes) {
    if (state_ == State::header) return take_header(bytes);
    return state_ == State::body ? take_body(bytes) : 0;
  }

  State state_ = State::header;
  HttpError error_;
  HttpRequest request_;
  std::string host_;
  int n_hosts_ = 0;
  bool is_http11_ = false, expects_continue_ = false;

 private:
  size_t take_header(std::string_view bytes);
  size_t take_body(std::string_view bytes);
  bool looks_like_http(std::string_view bytes);
  void fail(HttpError error);
  void fail(const error_code& code, std::string_view bytes);
  void end_header();
  HttpError framing_error() const;
  HttpError target_error(std::string_view target);
  HttpError coding_error() const;

  void on_request_impl(beast::http::verb, beast::string_view method, beast::string_view target,
                       int version, error_code& code) override;
  void on_field_impl(beast::http::field field, beast::string_view name, beast::string_view value,
                     error_code& code) override;
  size_t on_body_impl(beast::string_view piece, error_code&) override {
    request_.body.append(piece.data(), piece.size());
    return piece.size();
  }
  size_t on_chunk_body_impl(uint64_t, beast::string_view piece, error_code& code) override {
    return on_body_impl(piece, code);
  }
  void on_response_impl(int, beast::string_view, int, error_code&) override {}
  void on_header_impl(error_code&) override {}
  void on_body_init_impl(const boost::optional<uint64_t>&, error_code&) override {}
  void on_chunk_header_impl(uint64_t, beast::string_view, error_code&) override {}
  void on_finish_impl(error_code&) override {}

  const ParserLimits limits_;
  size_t header_used_ = 0, n_blank_ = 0;
  int n_lengths_ = 0, n_codings_ = 0;
  std::string coding_ = {}, content_coding_ = {}, expect_ = {};
  bool has_content_type_ = false;
};

void RequestParser::Impl::fail(HttpError error) {
  state_ = State::failed;
  error_ = std::move(error);
}

void RequestParser::Impl::fail(const error_code& code, std::string_view bytes) {
  using beast::http::error;
  if (!error_.ok()) return fail(error_);  // one of the functions that Beast calls knows better
  if (code == error::body_limit)
    return fail(http_error(ApiError::Kind::too_large,
                           fmt::format("the body is larger than {} bytes", limits_.body_bytes)));
  if (code == error::header_limit)
    return fail(
        http_error(431, fmt::format("the headers are larger than {} bytes", limits_.header_bytes)));
  if (code == error::bad_version && names_a_version(bytes))
    return fail(http_error(505, "this server speaks HTTP/1.1"));
  fail(http_error(400, fmt::format("malformed HTTP request: {}", code.message())));
}

// Says early what would otherwise wait for the end of a header that never comes.
bool RequestParser::Impl::looks_like_http(std::string_view bytes) {
  if (!is_token(bytes.substr(0, 1))) {
    fail(http_error(400, "malformed HTTP request (this port speaks HTTP, not HTTPS)"));
    return false;
  }
  const size_t longest = limits_.target_bytes + 64;  // with method and version
  if (bytes.substr(0, longest).find('\n') == std::string_view::npos && bytes.size() >= longest) {
    fail(http_error(
        414, fmt::format("the request's target is longer than {} bytes", limits_.target_bytes)));
    return false;
  }
  return true;
}

size_t RequestParser::Impl::take_header(std::string_view bytes) {
  size_t used = 0;
  if (header_used_ == 0) {
    // An empty line before a request is allowed: old clients end a body with one.
    while (used < bytes.size() && n_blank_ < kMaxBlankBytes &&
           (bytes[used] == '\r' || bytes[used] == '\n'))
      ++used, ++n_blank_;
    bytes.remove_prefix(used);
    if (bytes.empty() || !looks_like_http(bytes)) return used;
  }
  error_code code;
  const size_t n = put(boost::asio::const_buffer(bytes.data(), bytes.size()), code);
  header_used_ += n;
  const bool needs_more = code == beast::http::error::need_more;
  // Beast holds its limit against what one call offers, not against the sum.
  const size_t offered = header_used_ + (needs_more ? bytes.size() - n : 0);
  if (offered >= limits_.header_bytes && (!code || needs_more))
    fail(beast::http::error::header_limit, bytes);
  else if (code && !needs_more)
    fail(code, bytes);
  else if (!code)
    end_header();
  return used + n;
}

void RequestParser::Impl::end_header() {
  if (HttpError error = framing_error(); !error.ok()) return fail(std::move(error));
  state_ = is_done() ? State::done : State::body;
  expects_continue_ = is_http11_ && !expect_.empty();
}

// Step by step (a piece of the body, or a line between two), so that what is refused does not
// depend on how the network cut it.
size_t RequestParser::Impl::take_body(std::string_view bytes) {
  size_t used = 0;
  bool needs_more = false, is_too_long = false;
  while (used < bytes.size() && !is_done() && !needs_more && !is_too_long) {
    error_code code;
    const size_t body_before = request_.body.size();
    const std::string_view rest = bytes.substr(used);
    const size_t n = put(boost::asio::const_buffer(rest.data(), rest.size()), code);
    used += n;
    needs_more = code == beast::http::error::need_more;
    if (code && !needs_more) {
      fail(code, rest);
      return used;
    }
    const size_t line = needs_more ? rest.size() - n : n;
    is_too_long = request_.body.size() == body_before && line > kMaxChunkLineBytes;
  }
  if (is_too_long)
    fail(http_error(400, "malformed HTTP request: a chunk's size line or trailer is too long"));
  else if (is_done())
    state_ = State::done;
  return used;
}

void RequestParser::Impl::on_request_impl(beast::http::verb, beast::string_view method,
                                          beast::string_view target, int version,
                                          error_code& code) {
  is_http11_ = version >= 11;
  request_.method = std_view(method);
  error_ = target_error(std_view(target));
  if (!error_.ok()) code = beast::http::error::bad_target;
}

HttpError RequestParser::Impl::target_error(std::string_view target) {
  if (target.size() > limits_.target_bytes)
    return http_error(
        414, fmt::format("the request's target is longer than {} bytes", limits_.target_bytes));
  if (target == "*" && request_.method == "OPTIONS") {
    request_.path = target;
    return {};
  }
  bool has_host = false;
  for (const std::string_view scheme : {"http://", "https://"}) {
    if (has_host || !equals_ignoring_case(target.substr(0, scheme.size()), scheme)) continue;
    has_host = true;
    target.remove_prefix(scheme.size());
    host_ = target.substr(0, target.find_first_of("/?#"));
    target.remove_prefix(host_.size());
  }
  target = target.substr(0, target.find('#'));
  const size_t mark = std::min(target.find('?'), target.size());
  const auto path = has_host && mark == 0 ? "/" : decode_path(target.substr(0, mark));
  if (!path || path->empty() || path->front() != '/')
    return http_error(400, "the request's target is not a path");
  request_.path = *path;
  request_.query = target.substr(std::min(mark + 1, target.size()));
  return {};
}

void RequestParser::Impl::on_field_impl(beast::http::field which, beast::string_view name,
                                        beast::string_view value, error_code& code) {
  if (state_ != State::header) return;  // a trailer is no header: who was let in stays who it was
  using beast::http::field;
  if (request_.headers.size() >= limits_.n_headers) {
    error_ = http_error(431, fmt::format("more than {} headers", limits_.n_headers));
    code = beast::http::error::header_limit;
    return;
  }
  const std::string_view text = std_view(value);
  n_lengths_ += which == field::content_length;
  has_content_type_ |= which == field::content_type;
  if (which == field::transfer_encoding) {
    ++n_codings_;
    coding_ = lower_case(text);
  }
  if (which == field::content_encoding) content_coding_ = lower_case(text);
  if (which == field::expect) expect_ = lower_case(text);
  if (which == field::host && ++n_hosts_ == 1 && host_.empty()) host_ = text;
  request_.headers.emplace_back(lower_case(std_view(name)), text);
}

HttpError RequestParser::Impl::framing_error() const {
  if (n_lengths_ > 1) return http_error(400, "more than one Content-Length");
  if (n_hosts_ > 1) return http_error(400, "more than one Host header");
  if (n_hosts_ == 0 && is_http11_) return http_error(400, "no Host header");
  if (HttpError error = coding_error(); !error.ok()) return error;
  if (!expect_.empty() && expect_ != "100-continue")
    return http_error(417, "the only Expect that is supported is 100-continue");
  const bool has_length = n_lengths_ + n_codings_ > 0;
  const std::string& method = request_.method;
  const bool takes_body = method == "POST" || method == "PUT" || method == "PATCH";
  if (takes_body && !has_length && (!is_http11_ || has_content_type_))
    return http_error(411, "a body needs a Content-Length or Transfer-Encoding: chunked");
  return {};
}

HttpError RequestParser::Impl::coding_error() const {
  if (n_codings_ > 1) return http_error(400, "more than one Transfer-Encoding");
  if (n_codings_ == 1 && !is_http11_)
    return http_error(400, "Transfer-Encoding in an HTTP/1.0 request");
  if (n_codings_ == 1 && coding_ != "chunked")
    return http_error(ApiError::Kind::not_supported,
                      fmt::format("Transfer-Encoding '{}' is not supported; send the body chunked "
                                  "or with a Content-Length",
                                  coding_));
  if (!content_coding_.empty() && content_coding_ != "identity")
    return http_error(415,
                      fmt::format("Content-Encoding '{}' is not supported; send the body as it is",
                                  content_coding_));
  return {};
}

RequestParser::RequestParser(const ParserLimits& limits) : impl_(std::make_unique<Impl>(limits)) {}
RequestParser::~RequestParser() = default;

size_t RequestParser::put(std::string_view bytes) {
  return impl_->take(bytes);
}
RequestParser::State RequestParser::state() const {
  return impl_->state_;
}
const HttpError& RequestParser::error() const {
  return impl_->error_;
}
HttpRequest& RequestParser::request() {
  return impl_->request_;
}
const std::string& RequestParser::host() const {
  return impl_->host_;
}
bool RequestParser::has_host() const {
  return !impl_->host_.empty();
}
bool RequestParser::is_http11() const {
  return impl_->is_http11_;
}
bool RequestParser::keeps_alive() const {
  return impl_->is_http11_ && impl_->state_ == State::done && impl_->keep_alive();
}
bool RequestParser::expects_continue() const {
  return impl_->expects_continue_;
}

}  // namespace millrace::serve
