#include "serve/http_connection.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <boost/asio/post.hpp>
#include <cerrno>
#include <chrono>
#include <utility>

#include "base/clock.h"
#include "serve/http_text.h"

namespace millrace::serve {
namespace {

namespace asio = boost::asio;
using boost::system::error_code;
using Kind = ApiError::Kind;

// A client may send its next requests before it has this one's reply; beyond this they wait in the
// kernel.
constexpr size_t kMaxAheadBytes = 64 << 10;
constexpr size_t kKeptBytes = 4 << 10;  // what an emptied buffer may keep allocated
constexpr int kReadsPerTurn = 16;       // then the other connections have their turn
constexpr double kLingerS = 2;

int64_t after(double seconds) {
  return now_ns() + static_cast<int64_t>(seconds * 1e9);
}

void release_if_large(std::string& text) {
  if (text.empty() && text.capacity() > kKeptBytes) std::string().swap(text);
}

bool has_unread_input(int fd) {
  int n_bytes = 0;
  return ioctl(fd, FIONREAD, &n_bytes) == 0 && n_bytes > 0;
}

// What a log may have of a request, also when the handler has taken the rest.
HttpRequest outline(const HttpRequest& request) {
  return {.method = request.method,
          .path = request.path,
          .query = request.query,
          .id = request.id,
          .tenant = request.tenant,
          .is_admin = request.is_admin,
          .arrived_ns = request.arrived_ns};
}

}  // namespace

Connection::Connection(std::shared_ptr<Loop> loop, int fd, bool is_tcp)
    : loop_(std::move(loop)),
      shared_(loop_->shared()),
      fd_(loop_->context(), fd),
      timer_(loop_->context()),
      is_tcp_(is_tcp) {}

void Connection::start() {
  if (*shared_.draining) return close();
  set_deadline(after(shared_.options.header_timeout_s));
  arm_read();
}

void Connection::refuse() {
  HttpError error = http_error(Kind::overloaded, "too many connections");
  error.error.retry_after_s = 1;
  fail(error, true);
  arm_read();
}

void Connection::drain() {
  if (phase_ == Phase::idle) close();
}

void Connection::close() {
  if (phase_ == Phase::closed) return;
  phase_ = Phase::closed;
  if (exchange_) {
    exchange_->lose(true);
    report();
    exchange_.reset();
  }
  release_body();
  error_code ignored;
  fd_.close(ignored);
  timer_.cancel(ignored);
  loop_->remove(shared_from_this());
}

void Connection::drop() {
  if (phase_ == Phase::closed) return;
  const struct linger none = {.l_onoff = 1, .l_linger = 0};
  setsockopt(fd_.native_handle(), SOL_SOCKET, SO_LINGER, &none, sizeof none);
  close();
}

// ---- reading

void Connection::arm_read() {
  if (is_reading_ || has_ended_ || phase_ == Phase::closed) return;
  is_reading_ = true;
  fd_.async_wait(fd_.wait_read, [self = shared_from_this()](const error_code& failed) {
    self->is_reading_ = false;
    if (!failed) self->on_readable();
  });
}

void Connection::on_readable() {
  auto& scratch = loop_->scratch();
  for (int turn = 0; turn < kReadsPerTurn && phase_ != Phase::closed; ++turn) {
    if (phase_ == Phase::running && in_.size() >= kMaxAheadBytes) return;
    const ssize_t n = recv(fd_.native_handle(), scratch.data(), scratch.size(), MSG_DONTWAIT);
    if (n == 0) return on_end_of_input();
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) break;
    if (n < 0) return close();
    received({scratch.data(), static_cast<size_t>(n)});
  }
  arm_read();
}

void Connection::received(std::string_view bytes) {
  if (phase_ == Phase::lingering || phase_ == Phase::closed) return;
  in_.append(bytes);
  if (phase_ != Phase::running) advance();
}

// The client has closed its side, or all of it: that looks the same. What it asked for is told, and
// whatever is still written is sent: a client that only closed its side does read it.
void Connection::on_end_of_input() {
  has_ended_ = true;
  if (phase_ != Phase::running) return close();
  const auto exchange = exchange_;  // the callback may come back here
  exchange->lose(false);
}

// Goes as far as the bytes that are there allow.
void Connection::advance() {
  size_t used = 0;
  while (step(used)) {
  }
  if (phase_ == Phase::closed) return;
  in_.erase(0, used);
  release_if_large(in_);
}

bool Connection::step(size_t& used) {
  using State = RequestParser::State;
  if (phase_ > Phase::body || used >= in_.size()) return false;
  if (!parser_) begin_request();
  const bool was_header = parser_->state() == State::header;
  used += parser_->put(std::string_view(in_).substr(used));
  if (parser_->state() == State::failed) {
    fail(parser_->error(), true);
    return false;
  }
  if (!count_body()) return false;
  if (was_header && parser_->state() != State::header && !end_header()) return false;
  if (parser_->state() == State::done) {
    run_handler();
    return false;
  }
  return was_header && phase_ == Phase::body;
}

// All bodies that are being read share one budget: each alone within its limit, a few dozen clients
// could otherwise fill the memory.
bool Connection::count_body() {
  const size_t now = parser_->request().body.size();
  const size_t all = shared_.body_bytes += now - body_bytes_;
  body_bytes_ = now;
  if (all <= shared_.options.max_bodies_bytes) return true;
  HttpError error = http_error(Kind::overloaded, "too many large requests at once");
  error.error.retry_after_s = 1;
  fail(error, true);
  return false;
}

void Connection::begin_request() {
  parser_ = std::make_unique<RequestParser>(shared_.parser_limits);
  phase_ = Phase::header;
  begun_ns_ = now_ns();
  set_deadline(after(shared_.options.header_timeout_s));
}

void Connection::release_body() {
  shared_.body_bytes -= std::exchange(body_bytes_, 0);
}

// ---- admitting

// False: the request was answered with an error.
bool Connection::end_header() {
  HttpRequest& request = parser_->request();
  const std::string_view id = request.header("x-request-id");
  request.id = is_request_id(id) ? std::string(id) : make_request_id();
  cors_ = shared_.guard.cors(request);
  const bool has_body = parser_->state() == RequestParser::State::body;
  if (const HttpError error = admit(); !error.ok()) {
    fail(error, has_body || !parser_->keeps_alive());
    return false;
  }
  if (!has_body) return true;
  phase_ = Phase::body;
  set_deadline(after(shared_.options.body_timeout_s));
  if (!parser_->expects_continue()) return true;
  constexpr std::string_view kContinue = "HTTP/1.1 100 Continue\r\n\r\n";
  // Where the client takes not even this, it waits a while and sends the body unasked.
  (void)!send(fd_.native_handle(), kContinue.data(), kContinue.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
  return true;
}

HttpError Connection::admit() {
  const HttpRequest& request = parser_->request();
  if (is_tcp_ && parser_->has_host())
    if (HttpError error = shared_.guard.check_host(parser_->host()); !error.ok()) return error;
  if (HttpError error = shared_.guard.check_origin(request, parser_->host()); !error.ok())
    return error;
  if (request.path == "*") return {};
  const Router::Match match = shared_.router.find(request.method, request.path);
  if (match.methods.empty())
    return http_error(Kind::not_found, fmt::format("there is no {}", request.path));
  route_ = match.route;
  if (route_ != nullptr) return admit_key(*route_);
  if (request.method == "OPTIONS") return {};
  HttpError error =
      http_error(Kind::method, fmt::format("{} does not take {}", request.path, request.method));
  error.headers = {{"Allow", allow_list(match.methods)}};
  return error;
}

HttpError Connection::admit_key(const Route& route) {
  const Keys& keys = shared_.options.keys;
  if (keys.empty()) return {};
  HttpRequest& request = parser_->request();
  const Keys::Holder* holder = keys.find(request);
  if (holder != nullptr) {
    request.tenant = holder->tenant;
    request.is_admin = holder->is_admin;
  }
  if (route.access == Access::open) return {};
  if (holder == nullptr) {
    HttpError error = http_error(
        Kind::authentication, "no valid key; send one as 'Authorization: Bearer KEY' or x-api-key");
    error.headers = {{"WWW-Authenticate", "Bearer"}};
    return error;
  }
  if (route.access == Access::admin && !holder->is_admin)
    return http_error(Kind::permission, "this needs an admin key");
  return {};
}

// ---- answering

std::shared_ptr<Exchange> Connection::begin_exchange(bool closes) {
  ExchangeFacts facts{.cors = cors_, .closes = closes};
  if (parser_) {
    facts.request = outline(parser_->request());
    facts.is_http11 = parser_->is_http11();
    facts.is_head = facts.request.method == "HEAD";
  }
  if (facts.request.id.empty()) facts.request.id = make_request_id();
  facts.request.arrived_ns = begun_ns_ != 0 ? begun_ns_ : now_ns();
  phase_ = Phase::running;
  release_body();
  set_deadline(0);
  exchange_ = std::make_shared<Exchange>(std::move(facts), shared_.exchange_limits, loop_,
                                         [weak = weak_from_this()] {
                                           if (const auto self = weak.lock()) self->pump();
                                         });
  return exchange_;
}

void Connection::fail(const HttpError& error, bool closes) {
  begin_exchange(closes)->send_error(error);
}

void Connection::run_handler() {
  HttpRequest& request = parser_->request();
  request.arrived_ns = begun_ns_;
  remove_keys(request.headers);
  const auto exchange = begin_exchange(!parser_->keeps_alive());
  if (route_ == nullptr) return answer_options();
  // An exception lets go of the Reply, which is answered with a 500.
  try {
    route_->handler(std::move(request), make_reply(exchange));
  } catch (...) {
  }
}

void Connection::answer_options() {
  const HttpRequest& request = parser_->request();
  const std::string allow = allow_list(shared_.router.find(request.method, request.path).methods);
  HttpHeaders headers = {{"Allow", allow}};
  if (is_preflight(request) && !cors_.empty()) headers = preflight_headers(request, allow);
  exchange_->send(204, std::move(headers), "");
}

void Connection::pump() {
  if (phase_ != Phase::running || !exchange_) return;
  const bool was_empty = out_.empty();
  const Exchange::Taken taken = exchange_->take(out_);
  if (taken.is_dropped) return drop();
  if (was_empty) wrote_ns_ = now_ns();
  const bool all = flush();
  if (phase_ == Phase::closed) return;
  if (all && taken.is_done) return finish_exchange();
  set_running_deadline();
}

bool Connection::flush() {
  while (out_at_ < out_.size()) {
    const ssize_t n = send(fd_.native_handle(), out_.data() + out_at_, out_.size() - out_at_,
                           MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
      release_written();
      arm_write();
      return false;
    }
    if (n < 0) {
      close();
      return false;
    }
    out_at_ += static_cast<size_t>(n);
    exchange_->wrote(static_cast<size_t>(n));
    wrote_ns_ = now_ns();
  }
  out_.clear();
  out_at_ = 0;
  release_if_large(out_);
  return true;
}

// A client that is always behind, but reads, would otherwise have all it ever read kept.
void Connection::release_written() {
  if (out_at_ < out_.size() / 2) return;
  out_.erase(0, out_at_);
  out_at_ = 0;
}

void Connection::arm_write() {
  if (is_writing_) return;
  is_writing_ = true;
  fd_.async_wait(fd_.wait_write, [self = shared_from_this()](const error_code& failed) {
    self->is_writing_ = false;
    if (!failed) self->pump();
  });
}

void Connection::finish_exchange() {
  report();
  const bool closes = exchange_->closes() || *shared_.draining;
  const bool is_whole = parser_ && parser_->state() == RequestParser::State::done;
  exchange_.reset();
  parser_.reset();
  route_ = nullptr;
  cors_.clear();
  begun_ns_ = 0;
  if (closes) return is_whole && !has_unread_input(fd_.native_handle()) ? close() : linger();
  phase_ = Phase::idle;
  set_deadline(after(shared_.options.idle_timeout_s));
  advance();
  if (has_ended_ && phase_ < Phase::running) return close();
  arm_read();
}

void Connection::linger() {
  if (has_ended_) return close();
  shutdown(fd_.native_handle(), SHUT_WR);
  phase_ = Phase::lingering;
  std::string().swap(in_);
  set_deadline(after(kLingerS));
  arm_read();
}

void Connection::report() {
  if (!shared_.options.on_request_end) return;
  try {
    shared_.options.on_request_end(exchange_->summary());
  } catch (...) {
  }
}

// ---- time

// One timer for each connection, set again only when the deadline comes nearer: a stream moves its
// deadline with every piece, and the timer learns of it when it fires.
void Connection::set_deadline(int64_t at_ns) {
  deadline_ns_ = at_ns;
  if (at_ns != 0 && (armed_ns_ == 0 || at_ns < armed_ns_)) arm_timer();
}

void Connection::arm_timer() {
  armed_ns_ = deadline_ns_;
  const uint32_t round = ++timer_round_;
  timer_.expires_after(std::chrono::nanoseconds(std::max<int64_t>(deadline_ns_ - now_ns(), 0)));
  timer_.async_wait([self = shared_from_this(), round](const error_code& failed) {
    if (failed || round != self->timer_round_ || self->phase_ == Phase::closed) return;
    self->armed_ns_ = 0;
    if (self->deadline_ns_ == 0) return;
    if (now_ns() < self->deadline_ns_) return self->arm_timer();
    self->deadline_ns_ = 0;
    self->on_deadline();
  });
}

void Connection::set_running_deadline() {
  const HttpServerOptions& options = shared_.options;
  const auto from_last = [this](double seconds) {
    return wrote_ns_ + static_cast<int64_t>(seconds * 1e9);
  };
  if (!out_.empty())
    set_deadline(from_last(options.write_timeout_s));
  else if (exchange_->is_streaming())
    set_deadline(from_last(options.keep_alive_s));
  else
    set_deadline(0);
}

void Connection::on_deadline() {
  switch (phase_) {
    case Phase::header:
      return fail(http_error(408, "the request's headers took too long"), true);
    case Phase::body:
      return fail(http_error(408, "the request's body took too long"), true);
    case Phase::running:
      if (!out_.empty()) return drop();
      exchange_->write_comment();
      return pump();
    case Phase::idle:
    case Phase::lingering:
    case Phase::closed:
      return close();
  }
}

}  // namespace millrace::serve
