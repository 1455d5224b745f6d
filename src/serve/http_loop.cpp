// The threads that connections live on: see http_connection.h.
#include <boost/asio/post.hpp>
#include <vector>

#include "serve/http_connection.h"

namespace millrace::serve {

HttpShared::HttpShared(HttpServerOptions the_options, std::vector<Route> routes)
    : options(std::move(the_options)),
      parser_limits{.header_bytes = options.max_header_bytes, .body_bytes = options.max_body_bytes},
      router(std::move(routes)),
      guard({.address = options.address,
             .allowed_hosts = options.allowed_hosts,
             .allowed_origins = options.allowed_origins}),
      draining(std::make_shared<std::atomic<bool>>(false)),
      exchange_limits(std::make_shared<Exchange::Limits>(Exchange::Limits{
          .max_unread_bytes = options.max_unread_bytes,
          .error_body = options.error_body ? options.error_body : ErrorBody(plain_error_body),
          .draining = draining})) {}

Loop::Loop(std::shared_ptr<HttpShared> shared)
    : shared_(std::move(shared)), work_(boost::asio::make_work_guard(context_)) {}

void Loop::start() {
  thread_ = std::thread([this] { run(); });
}

// What a handler of ours throws (memory ran out) costs that connection, not the server.
void Loop::run() noexcept {
  for (;;) try {
      context_.run();
      return;
    } catch (...) {
    }
}

bool Loop::post(std::function<void()> work) {
  const std::lock_guard lock(mutex_);
  if (is_finished_) return false;
  boost::asio::post(context_, std::move(work));
  return true;
}

void Loop::add(int fd, bool is_tcp, bool is_refused) {
  auto connection = std::make_shared<Connection>(shared_from_this(), fd, is_tcp);
  connections_.insert(connection);
  if (is_refused)
    connection->refuse();
  else
    connection->start();
}

void Loop::remove(const std::shared_ptr<Connection>& connection) {
  connections_.erase(connection);
  const std::lock_guard lock(shared_->mutex);
  --shared_->n_connections;
  shared_->closed_one.notify_all();
}

// Closing takes a connection out of the set, so both walk over a copy.
void Loop::drain_all() {
  const std::vector<std::shared_ptr<Connection>> all(connections_.begin(), connections_.end());
  for (const auto& connection : all) connection->drain();
}

void Loop::close_all() {
  const std::vector<std::shared_ptr<Connection>> all(connections_.begin(), connections_.end());
  for (const auto& connection : all) connection->close();
}

void Loop::finish() {
  const std::lock_guard lock(mutex_);
  // Under the lock: a connection that was added behind this would never be closed.
  boost::asio::post(context_, [self = shared_from_this()] { self->close_all(); });
  is_finished_ = true;
  work_.reset();
}

void Loop::join() {
  if (thread_.joinable()) thread_.join();
}

}  // namespace millrace::serve
