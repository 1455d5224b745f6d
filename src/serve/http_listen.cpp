#include "serve/http_listen.h"

#include <fmt/format.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>

namespace millrace::serve {
namespace {

constexpr int kBacklog = 1024;
constexpr rlim_t kOtherFiles = 256;  // models, the disk tier, logs

Status cannot_listen(const std::string& where, const char* why) {
  return error(Code::unavailable, "cannot listen on {}: {}", where, why);
}

int port_of(int fd) {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  if (getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size) != 0) return 0;
  if (address.ss_family == AF_INET6)
    return ntohs(reinterpret_cast<const sockaddr_in6&>(address).sin6_port);
  return ntohs(reinterpret_cast<const sockaddr_in&>(address).sin_port);
}

// The descriptor, or minus the error.
int bind_and_listen(const addrinfo& at) {
  const int fd = socket(at.ai_family, at.ai_socktype | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (fd < 0) return -errno;
  const int on = 1;
  setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (bind(fd, at.ai_addr, at.ai_addrlen) == 0 && listen(fd, kBacklog) == 0) return fd;
  const int why = errno;
  close(fd);
  return -why;
}

bool somebody_listens(const sockaddr_un& address) {
  const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (fd < 0) return true;
  const int result = connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address);
  const bool refused = result != 0 && (errno == ECONNREFUSED || errno == ENOENT);
  close(fd);
  return !refused;
}

void remove_stale_socket(const sockaddr_un& address) {
  struct stat info {};
  if (lstat(address.sun_path, &info) == 0 && S_ISSOCK(info.st_mode) && !somebody_listens(address))
    unlink(address.sun_path);
}

}  // namespace

Result<Listening> listen_tcp(const std::string& address, int port) {
  const std::string where = fmt::format("{}:{}", address, port);
  if (port < 0 || port > 65535) return error(Code::invalid_argument, "there is no port {}", port);
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE;
  addrinfo* found = nullptr;
  const int failed = getaddrinfo(address.c_str(), std::to_string(port).c_str(), &hints, &found);
  if (failed != 0) return cannot_listen(where, gai_strerror(failed));
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> owner(found, freeaddrinfo);
  int fd = -EADDRNOTAVAIL;
  for (const addrinfo* at = found; at != nullptr && fd < 0; at = at->ai_next)
    fd = bind_and_listen(*at);
  if (fd == -EADDRINUSE)
    return cannot_listen(where, "another program uses this port; choose one with --port");
  if (fd < 0) return cannot_listen(where, std::strerror(-fd));
  return Listening{.fd = fd, .port = port_of(fd)};
}

Result<Listening> listen_unix(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.empty() || path.size() >= sizeof address.sun_path)
    return error(Code::invalid_argument, "the path of a Unix socket has 1 to {} bytes: '{}'",
                 sizeof address.sun_path - 1, path);
  path.copy(address.sun_path, path.size());
  remove_stale_socket(address);
  const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (fd < 0) return cannot_listen(path, std::strerror(errno));
  fchmod(fd, S_IRUSR | S_IWUSR);  // before bind: the file never has other rights
  if (bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0 &&
      listen(fd, kBacklog) == 0)
    return Listening{.fd = fd};
  const int why = errno;
  close(fd);
  if (why == EADDRINUSE) return cannot_listen(path, "the file exists, or another program listens");
  return cannot_listen(path, std::strerror(why));
}

int raise_file_limit(int n_connections) {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return n_connections;
  const rlim_t wanted = static_cast<rlim_t>(n_connections) + kOtherFiles;
  if (limit.rlim_cur < wanted) {
    rlimit raised = limit;
    raised.rlim_cur = std::min(wanted, limit.rlim_max);
    if (setrlimit(RLIMIT_NOFILE, &raised) == 0) limit = raised;
  }
  if (limit.rlim_cur >= wanted) return n_connections;
  return static_cast<int>(limit.rlim_cur > 2 * kOtherFiles ? limit.rlim_cur - kOtherFiles
                                                           : limit.rlim_cur / 2);
}

void tune_connection(int fd) {
  const int on = 1, idle_s = 30, every_s = 10, n_probes = 3;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
  setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle_s, sizeof idle_s);
  setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &every_s, sizeof every_s);
  setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &n_probes, sizeof n_probes);
}

}  // namespace millrace::serve
