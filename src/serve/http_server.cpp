#include "serve/http_server.h"

#include <sys/socket.h>
#include <unistd.h>

#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/steady_timer.hpp>
#include <cerrno>
#include <chrono>
#include <utility>

#include "serve/http_connection.h"
#include "serve/http_listen.h"

namespace millrace::serve {
namespace {

using boost::system::error_code;

constexpr int kAcceptsPerTurn = 64;
// Connections beyond the limit that are told so; more than these are just closed.
constexpr int kMaxRefused = 64;
constexpr auto kAcceptPause = std::chrono::milliseconds(200);

// Lives on the first loop's thread.
class Listener : public std::enable_shared_from_this<Listener> {
 public:
  using Accepted = std::function<void(int fd)>;

  Listener(boost::asio::io_context& context, int fd, Accepted accepted)
      : fd_(context, fd), timer_(context), accepted_(std::move(accepted)) {}

  void arm() {
    fd_.async_wait(fd_.wait_read, [self = shared_from_this()](const error_code& failed) {
      if (!failed) self->accept_all();
    });
  }

  void close() {
    error_code ignored;
    fd_.close(ignored);
    timer_.cancel(ignored);
  }

 private:
  void accept_all() {
    for (int turn = 0; turn < kAcceptsPerTurn; ++turn) {
      const int fd = accept4(fd_.native_handle(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
      if (fd >= 0)
        accepted_(fd);
      else if (errno == EAGAIN || errno == EWOULDBLOCK)
        break;
      else if (errno != EINTR && errno != ECONNABORTED)
        return pause();
    }
    arm();
  }

  // Out of files or memory: the connection stays in the queue, and trying at once would only spin.
  void pause() {
    timer_.expires_after(kAcceptPause);
    timer_.async_wait([self = shared_from_this()](const error_code& failed) {
      if (!failed) self->arm();
    });
  }

  boost::asio::posix::stream_descriptor fd_;
  boost::asio::steady_timer timer_;
  Accepted accepted_;
};

}  // namespace

class HttpServer::Impl {
 public:
  Impl(HttpServerOptions options, std::vector<Route> routes)
      : shared_(std::make_shared<HttpShared>(std::move(options), std::move(routes))),
        max_connections_(raise_file_limit(shared_->options.max_connections)) {}

  Status start();
  void stop(double drain_seconds);

  int port_ = 0;
  std::shared_ptr<HttpShared> shared_;

 private:
  void listen(int fd, bool is_tcp);
  void accepted(int fd, bool is_tcp);
  void close_listeners();

  const int max_connections_;
  std::vector<std::shared_ptr<Loop>> loops_;
  std::vector<std::shared_ptr<Listener>> listeners_;
  size_t next_loop_ = 0;
  bool owns_unix_path_ = false, is_stopped_ = false;
};

Status HttpServer::Impl::start() {
  const HttpServerOptions& options = shared_->options;
  if (options.port < 0 && options.unix_path.empty())
    return error(Code::invalid_argument, "neither a port nor a Unix socket to listen on");
  if (options.port >= 0 && options.keys.empty() && !options.allows_anyone &&
      !is_loopback(options.address))
    return error(
        Code::invalid_argument,
        "other machines can reach {}, and no keys are set: set keys (--api-key-file), or let "
        "anyone use this server (--no-api-key)",
        options.address);
  for (int i = 0; i < std::max(options.n_threads, 1); ++i)
    loops_.emplace_back(std::make_shared<Loop>(shared_))->start();
  if (options.port >= 0) {
    MILLRACE_ASSIGN(const Listening tcp, listen_tcp(options.address, options.port));
    port_ = tcp.port;
    listen(tcp.fd, true);
  }
  if (!options.unix_path.empty()) {
    MILLRACE_ASSIGN(const Listening local, listen_unix(options.unix_path));
    owns_unix_path_ = true;
    listen(local.fd, false);
  }
  for (const auto& listener : listeners_)
    (void)loops_.front()->post([listener] { listener->arm(); });
  return {};
}

void HttpServer::Impl::listen(int fd, bool is_tcp) {
  listeners_.push_back(std::make_shared<Listener>(
      loops_.front()->context(), fd, [this, is_tcp](int client) { accepted(client, is_tcp); }));
}

void HttpServer::Impl::accepted(int fd, bool is_tcp) {
  const int n = ++shared_->n_connections;
  if (is_tcp) tune_connection(fd);
  const bool is_refused = n > max_connections_;
  const auto& loop = loops_[next_loop_++ % loops_.size()];
  const bool taken =
      n <= max_connections_ + kMaxRefused &&
      loop->post([loop, fd, is_tcp, is_refused] { loop->add(fd, is_tcp, is_refused); });
  if (taken) return;
  --shared_->n_connections;
  ::close(fd);
}

void HttpServer::Impl::close_listeners() {
  // Within the loop where it runs: a listener is not to be touched from two threads.
  for (const auto& listener : listeners_)
    (void)loops_.front()->post([listener] { listener->close(); });
  listeners_.clear();
  if (owns_unix_path_) unlink(shared_->options.unix_path.c_str());
}

void HttpServer::Impl::stop(double drain_seconds) {
  if (std::exchange(is_stopped_, true)) return;
  *shared_->draining = true;
  close_listeners();
  for (const auto& loop : loops_) (void)loop->post([loop] { loop->drain_all(); });
  {
    std::unique_lock lock(shared_->mutex);
    shared_->closed_one.wait_for(lock, std::chrono::duration<double>(drain_seconds),
                                 [this] { return shared_->n_connections == 0; });
  }
  for (const auto& loop : loops_) loop->finish();
  for (const auto& loop : loops_) loop->join();
}

HttpServer::HttpServer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

HttpServer::~HttpServer() {
  stop(0);
}

Result<std::unique_ptr<HttpServer>> HttpServer::start(HttpServerOptions options,
                                                      std::vector<Route> routes) {
  auto impl = std::make_unique<Impl>(std::move(options), std::move(routes));
  const Status status = impl->start();
  std::unique_ptr<HttpServer> server(new HttpServer(std::move(impl)));
  if (!status.ok()) return status;
  return server;
}

int HttpServer::port() const {
  return impl_->port_;
}

int HttpServer::n_connections() const {
  return impl_->shared_->n_connections;
}

void HttpServer::stop(double drain_seconds) {
  impl_->stop(drain_seconds);
}

}  // namespace millrace::serve
