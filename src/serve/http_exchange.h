// One request's reply, between the threads that write it and the connection that sends it. Writers
// append under a lock and wake the connection; the connection takes what is there. It outlives both
// sides: a writer may come when the connection, or the whole server, has gone.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>

#include "serve/http.h"
#include "serve/http_server.h"

namespace millrace::serve {

// The thread of a connection, as an Exchange needs it: false once the thread has ended.
class Poster {
 public:
  virtual ~Poster() = default;
  virtual bool post(std::function<void()> work) = 0;
};

// What the reply must know of its request.
struct ExchangeFacts {
  HttpRequest request = {};  // as in RequestEnd
  HttpHeaders cors = {};
  bool is_http11 = true, closes = false, is_head = false;
};

class Exchange : public std::enable_shared_from_this<Exchange> {
 public:
  struct Limits {
    size_t max_unread_bytes = 0;
    ErrorBody error_body = {};
    std::shared_ptr<const std::atomic<bool>> draining = {};  // then every reply is the last
  };
  struct Taken {
    bool is_done = false;     // nothing will follow what was taken
    bool is_dropped = false;  // broken off: close without sending the rest
  };

  Exchange(ExchangeFacts facts, std::shared_ptr<const Limits> limits,
           std::shared_ptr<Poster> poster, std::function<void()> pump);

  // The writers' side; see Reply.
  void send(int status, HttpHeaders headers, std::string body);
  void begin_events(HttpHeaders headers);
  void write(std::string_view piece);
  void end();
  void on_gone(std::function<void()> gone);
  bool is_gone() const;
  size_t unread_bytes() const;
  void abandon();  // nobody can finish it any more
  void send_error(const HttpError& error);

  // The connection's side, on its thread.
  Taken take(std::string& out);  // appends
  void wrote(size_t n_bytes);
  void write_comment();     // where the client has read everything
  void lose(bool is_lost);  // the client sends no more; lost: nor can it be sent anything
  bool is_streaming() const;
  bool closes() const;  // the connection ends with this reply
  RequestEnd summary() const;

 private:
  enum class State : unsigned char { waiting, streaming, done };

  void append_head(int status, const HttpHeaders& headers, const std::string* body);
  void append_piece(std::string_view piece);
  void wake(std::unique_lock<std::mutex>& lock);

  const std::shared_ptr<const Limits> limits_;
  const std::shared_ptr<Poster> poster_;
  const std::function<void()> pump_;

  mutable std::mutex mutex_;
  ExchangeFacts facts_;
  State state_ = State::waiting;
  std::string out_;          // not yet taken
  size_t unread_bytes_ = 0;  // with what was taken and not yet written
  int64_t wrote_bytes_ = 0;
  int status_ = 0;
  bool is_chunked_ = false, is_gone_ = false, is_lost_ = false, is_dropped_ = false;
  bool wake_posted_ = false;
  std::function<void()> gone_;
};

// The Reply of an Exchange: the last holder's letting go is what abandon() is for.
std::shared_ptr<Reply> make_reply(std::shared_ptr<Exchange> exchange);

}  // namespace millrace::serve
