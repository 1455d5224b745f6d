// One client's connection and the thread that serves it: for http_server.cpp alone. Each connection
// belongs to one Loop for life, so nothing here needs a lock. Sockets are non-blocking and waited
// for; bytes are read into a buffer of the loop's, so that a silent connection holds none.
#pragma once

#include <array>
#include <atomic>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/steady_timer.hpp>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <unordered_set>

#include "serve/http_exchange.h"
#include "serve/http_guard.h"
#include "serve/http_parser.h"
#include "serve/http_server.h"
#include "serve/router.h"

namespace millrace::serve {

// What all connections share, none of it changing while they run but the counts.
struct HttpShared {
  HttpShared(HttpServerOptions the_options, std::vector<Route> routes);

  const HttpServerOptions options;
  const ParserLimits parser_limits;
  const Router router;
  const HttpGuard guard;
  const std::shared_ptr<std::atomic<bool>> draining;
  const std::shared_ptr<const Exchange::Limits> exchange_limits;
  std::atomic<int> n_connections{0};
  std::atomic<size_t> body_bytes{0};  // of the bodies that are being read
  std::mutex mutex = {};
  std::condition_variable closed_one = {};
};

class Connection;

class Loop final : public Poster, public std::enable_shared_from_this<Loop> {
 public:
  explicit Loop(std::shared_ptr<HttpShared> shared);

  void start();
  bool post(std::function<void()> work) override;
  void add(int fd, bool is_tcp, bool is_refused);  // on its thread
  void drain_all();
  void finish();  // takes no more work, closes every connection and lets the thread end
  void join();

  boost::asio::io_context& context() { return context_; }
  HttpShared& shared() { return *shared_; }
  std::array<char, 64 << 10>& scratch() { return scratch_; }
  void remove(const std::shared_ptr<Connection>& connection);

 private:
  void run() noexcept;
  void close_all();

  const std::shared_ptr<HttpShared> shared_;
  boost::asio::io_context context_{1};
  boost::asio::executor_work_guard<boost::asio::io_context::executor_type> work_;
  std::mutex mutex_;
  bool is_finished_ = false;
  std::unordered_set<std::shared_ptr<Connection>> connections_;
  std::array<char, 64 << 10> scratch_;
  std::thread thread_;
};

class Connection : public std::enable_shared_from_this<Connection> {
 public:
  Connection(std::shared_ptr<Loop> loop, int fd, bool is_tcp);

  void start();
  void refuse();  // too many: says so and closes
  void drain();   // closes where no request has begun
  void close();

 private:
  // running: a request is with its handler, or its reply on the way. lingering: everything was
  // sent, and what the client still sends is thrown away, lest closing make the client lose it.
  enum class Phase : unsigned char { idle, header, body, running, lingering, closed };

  void arm_read();
  void arm_write();
  void on_readable();
  void received(std::string_view bytes);
  void on_end_of_input();
  void advance();
  bool step(size_t& used);
  void begin_request();
  bool count_body();
  void release_body();
  bool end_header();

  HttpError admit();
  HttpError admit_key(const Route& route);
  void answer_options();
  void run_handler();
  void fail(const HttpError& error, bool closes);
  std::shared_ptr<Exchange> begin_exchange(bool closes);

  void pump();
  bool flush();  // false: nothing more can be written now
  void finish_exchange();
  void release_written();
  void linger();
  void drop();  // at once, without what is still unsent
  void report();

  void set_deadline(int64_t at_ns);  // 0: none
  void arm_timer();
  void on_deadline();
  void set_running_deadline();

  const std::shared_ptr<Loop> loop_;
  HttpShared& shared_;
  boost::asio::posix::stream_descriptor fd_;
  boost::asio::steady_timer timer_;
  Phase phase_ = Phase::idle;
  bool is_tcp_, is_reading_ = false, is_writing_ = false;
  bool has_ended_ = false;  // the client sends no more
  uint32_t timer_round_ = 0;
  int64_t deadline_ns_ = 0, armed_ns_ = 0, begun_ns_ = 0, wrote_ns_ = 0;
  std::string in_;   // read and not yet parsed
  std::string out_;  // to be written, from out_at_ on
  size_t out_at_ = 0;
  size_t body_bytes_ = 0;  // of this request, as counted in shared_
  std::unique_ptr<RequestParser> parser_;
  const Route* route_ = nullptr;
  HttpHeaders cors_;
  std::shared_ptr<Exchange> exchange_;
};

}  // namespace millrace::serve
