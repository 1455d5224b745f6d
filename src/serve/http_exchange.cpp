#include "serve/http_exchange.h"

#include "base/clock.h"
#include "serve/http_text.h"

namespace millrace::serve {
namespace {

constexpr int kClientClosed = 499;  // no reply was sent; the number is nginx's

// A callback of a caller's must not end the server's thread.
void call(const std::function<void()>& function) {
  try {
    if (function) function();
  } catch (...) {
  }
}

class ExchangeReply final : public Reply {
 public:
  explicit ExchangeReply(std::shared_ptr<Exchange> exchange) : exchange_(std::move(exchange)) {}
  ~ExchangeReply() override { exchange_->abandon(); }
  ExchangeReply(const ExchangeReply&) = delete;
  ExchangeReply& operator=(const ExchangeReply&) = delete;

  void send(int status, HttpHeaders headers, std::string body) override {
    exchange_->send(status, std::move(headers), std::move(body));
  }
  void begin_events(HttpHeaders headers) override { exchange_->begin_events(std::move(headers)); }
  void write(std::string piece) override { exchange_->write(piece); }
  void end() override { exchange_->end(); }
  void on_gone(std::function<void()> gone) override { exchange_->on_gone(std::move(gone)); }
  bool is_gone() const override { return exchange_->is_gone(); }
  size_t unread_bytes() const override { return exchange_->unread_bytes(); }

 private:
  std::shared_ptr<Exchange> exchange_;
};

}  // namespace

std::shared_ptr<Reply> make_reply(std::shared_ptr<Exchange> exchange) {
  return std::make_shared<ExchangeReply>(std::move(exchange));
}

Exchange::Exchange(ExchangeFacts facts, std::shared_ptr<const Limits> limits,
                   std::shared_ptr<Poster> poster, std::function<void()> pump)
    : limits_(std::move(limits)),
      poster_(std::move(poster)),
      pump_(std::move(pump)),
      facts_(std::move(facts)) {}

// One post for any number of writes until the connection takes them.
void Exchange::wake(std::unique_lock<std::mutex>& lock) {
  if (wake_posted_ || is_lost_) return;
  wake_posted_ = true;
  lock.unlock();
  (void)poster_->post([self = shared_from_this()] { self->pump_(); });
}

void Exchange::append_head(int status, const HttpHeaders& headers, const std::string* body) {
  status_ = status;
  facts_.closes |= !facts_.is_http11 || *limits_->draining;
  is_chunked_ = body == nullptr && facts_.is_http11;
  ReplyHead head{.status = status, .headers = &headers, .cors = &facts_.cors};
  head.id = facts_.request.id;
  head.is_chunked = is_chunked_;
  head.closes = facts_.closes;
  if (body != nullptr) head.length = body->size();
  if (body == nullptr)
    head.default_type = "text/event-stream";
  else if (!body->empty())
    head.default_type = "application/json";
  const std::string text = reply_head(head);
  out_ += text;
  unread_bytes_ += text.size();
}

void Exchange::append_piece(std::string_view piece) {
  const size_t before = out_.size();
  if (is_chunked_)
    append_chunk(out_, piece);
  else
    out_ += piece;
  unread_bytes_ += out_.size() - before;
}

void Exchange::send(int status, HttpHeaders headers, std::string body) {
  std::function<void()> gone;  // let go of outside the lock: it may hold the Reply
  std::unique_lock lock(mutex_);
  if (state_ != State::waiting) return;
  state_ = State::done;
  gone.swap(gone_);
  append_head(status, headers, &body);
  if (!facts_.is_head && !has_no_body(status)) {
    out_ += body;
    unread_bytes_ += body.size();
  }
  wake(lock);
}

void Exchange::send_error(const HttpError& error) {
  HttpHeaders headers = error.headers;
  if (error.error.retry_after_s > 0)
    headers.emplace_back("Retry-After", std::to_string(error.error.retry_after_s));
  std::string body;
  try {
    body = limits_->error_body(facts_.request.path, error.error);
  } catch (...) {
    body = "{\"error\":{\"message\":\"internal error\"}}";
  }
  send(error.status, std::move(headers), std::move(body));
}

void Exchange::begin_events(HttpHeaders headers) {
  std::unique_lock lock(mutex_);
  if (state_ != State::waiting) return;
  state_ = State::streaming;
  headers.emplace_back("Cache-Control", "no-cache");
  headers.emplace_back("X-Accel-Buffering", "no");
  append_head(200, headers, nullptr);
  wake(lock);
}

void Exchange::write(std::string_view piece) {
  std::unique_lock lock(mutex_);
  if (state_ != State::streaming || is_lost_ || is_dropped_ || facts_.is_head || piece.empty())
    return;
  is_dropped_ = unread_bytes_ > 0 && unread_bytes_ + piece.size() > limits_->max_unread_bytes;
  if (is_dropped_)
    std::string().swap(out_);
  else
    append_piece(piece);
  wake(lock);
}

void Exchange::end() {
  std::function<void()> gone;
  std::unique_lock lock(mutex_);
  if (state_ != State::streaming) return;
  state_ = State::done;
  gone.swap(gone_);
  if (is_chunked_ && !facts_.is_head) append_piece("");  // the last chunk is the empty one
  wake(lock);
}

void Exchange::abandon() {
  std::unique_lock lock(mutex_);
  if (state_ == State::done) return;
  if (state_ == State::waiting && !is_lost_) {
    facts_.closes = true;
    lock.unlock();
    return send_error(http_error(500, "the server gave no answer"));
  }
  std::function<void()> gone;
  gone.swap(gone_);
  state_ = State::done;
  is_dropped_ = true;
  wake(lock);
  if (lock.owns_lock()) lock.unlock();
}

void Exchange::on_gone(std::function<void()> gone) {
  std::unique_lock lock(mutex_);
  if (state_ == State::done) return;
  if (!is_gone_) {
    gone_.swap(gone);
    lock.unlock();
    return;
  }
  lock.unlock();
  if (!poster_->post([gone] { call(gone); })) call(gone);
}

bool Exchange::is_gone() const {
  const std::lock_guard lock(mutex_);
  return is_gone_;
}

size_t Exchange::unread_bytes() const {
  const std::lock_guard lock(mutex_);
  return unread_bytes_;
}

Exchange::Taken Exchange::take(std::string& out) {
  const std::lock_guard lock(mutex_);
  wake_posted_ = false;
  if (out.empty())
    out.swap(out_);
  else
    out += out_;
  std::string().swap(out_);
  return {.is_done = state_ == State::done, .is_dropped = is_dropped_};
}

void Exchange::wrote(size_t n_bytes) {
  const std::lock_guard lock(mutex_);
  unread_bytes_ -= n_bytes;
  wrote_bytes_ += static_cast<int64_t>(n_bytes);
}

void Exchange::write_comment() {
  const std::lock_guard lock(mutex_);
  if (state_ == State::streaming && unread_bytes_ == 0 && !facts_.is_head)
    append_piece(": keep-alive\n\n");
}

void Exchange::lose(bool is_lost) {
  std::function<void()> gone;
  {
    const std::lock_guard lock(mutex_);
    is_lost_ |= is_lost;
    if (is_lost_) std::string().swap(out_);
    if (is_gone_ || (state_ == State::done && !is_dropped_)) return;
    is_gone_ = true;
    gone.swap(gone_);
  }
  call(gone);
}

bool Exchange::is_streaming() const {
  const std::lock_guard lock(mutex_);
  return state_ == State::streaming;
}

bool Exchange::closes() const {
  const std::lock_guard lock(mutex_);
  return facts_.closes;
}

RequestEnd Exchange::summary() const {
  const std::lock_guard lock(mutex_);
  RequestEnd out{.request = facts_.request, .status = status_, .n_bytes = wrote_bytes_};
  if (out.status == 0) out.status = kClientClosed;
  out.seconds = static_cast<double>(now_ns() - facts_.request.arrived_ns) * 1e-9;
  out.is_gone = is_gone_ || is_lost_ || is_dropped_;
  return out;
}

}  // namespace millrace::serve
