// A client for tests of the HTTP server: sends any bytes, whole or in pieces, and reads what comes
// back. Nothing in it waits for longer than its timeout.
#pragma once

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <string>
#include <string_view>
#include <utility>

#include "base/clock.h"

namespace millrace::serve {

struct TestReply {
  int status = 0;  // 0: none came
  std::string head = {}, body = {};

  bool has(std::string_view text) const { return head.find(text) != std::string::npos; }
};

class TestClient {
 public:
  static constexpr int kTimeoutMs = 20000;

  // receive_bytes: the size of the kernel's buffer, where a test wants a small one.
  explicit TestClient(int port, int receive_bytes = 0) {
    fd_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (receive_bytes > 0)
      setsockopt(fd_, SOL_SOCKET, SO_RCVBUF, &receive_bytes, sizeof receive_bytes);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<uint16_t>(port));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    ok_ = connect(fd_, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0;
  }
  explicit TestClient(const std::string& path) {
    fd_ = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    path.copy(address.sun_path, sizeof address.sun_path - 1);
    ok_ = connect(fd_, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0;
  }
  ~TestClient() { close(); }
  TestClient(TestClient&& other) noexcept
      : fd_(std::exchange(other.fd_, -1)), ok_(other.ok_), in_(std::move(other.in_)) {}
  TestClient(const TestClient&) = delete;
  TestClient& operator=(const TestClient&) = delete;

  bool ok() const { return ok_; }
  void close() {
    if (fd_ >= 0) ::close(std::exchange(fd_, -1));
  }
  void close_sending() { shutdown(fd_, SHUT_WR); }
  void reset() {
    const linger now = {.l_onoff = 1, .l_linger = 0};
    setsockopt(fd_, SOL_SOCKET, SO_LINGER, &now, sizeof now);
    close();
  }

  bool send(std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t n = ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (n <= 0) return false;
      bytes.remove_prefix(static_cast<size_t>(n));
    }
    return true;
  }

  // What was read up to and including `mark`; empty where it did not come.
  std::string read_through(std::string_view mark) {
    for (;;) {
      if (const size_t at = in_.find(mark); at != std::string::npos) return take(at + mark.size());
      if (!read_some()) return {};
    }
  }
  std::string read_bytes(size_t n) {
    while (in_.size() < n)
      if (!read_some()) return {};
    return take(n);
  }
  std::string read_to_end() {
    while (read_some()) {
    }
    return take(in_.size());
  }
  // Whether the server closes, without another byte.
  bool is_closed() { return read_to_end().empty() && has_ended_; }
  // Skips a 100 Continue.
  TestReply reply(bool is_head = false) {
    TestReply out;
    do {
      out.head = read_through("\r\n\r\n");
      if (out.head.size() < 12) return {};
      out.status = std::atoi(out.head.c_str() + 9);
    } while (out.status == 100);
    if (is_head || out.status == 204) return out;
    if (const size_t at = out.head.find("Content-Length: "); at != std::string::npos)
      out.body = read_bytes(static_cast<size_t>(std::atoll(out.head.c_str() + at + 16)));
    else if (out.has("Transfer-Encoding: chunked"))
      out.body = read_chunks();
    else
      out.body = read_to_end();
    return out;
  }
  // One piece of a chunked reply; empty at its end.
  std::string read_chunk() {
    const std::string line = read_through("\r\n");
    if (line.empty()) return {};
    const std::string piece = read_bytes(std::strtoull(line.c_str(), nullptr, 16) + 2);
    return piece.size() < 2 ? "" : piece.substr(0, piece.size() - 2);
  }
  std::string read_chunks() {
    std::string out;
    for (std::string piece = read_chunk(); !piece.empty(); piece = read_chunk()) out += piece;
    return out;
  }

  TestReply ask(std::string_view request) { return send(request) ? reply() : TestReply{}; }

 private:
  std::string take(size_t n) {
    std::string out = in_.substr(0, n);
    in_.erase(0, n);
    return out;
  }
  bool read_some() {
    pollfd one{.fd = fd_, .events = POLLIN, .revents = 0};
    if (poll(&one, 1, kTimeoutMs) != 1) return false;
    char bytes[16384];
    const ssize_t n = recv(fd_, bytes, sizeof bytes, 0);
    has_ended_ |= n <= 0;
    if (n > 0) in_.append(bytes, static_cast<size_t>(n));
    return n > 0;
  }

  int fd_ = -1;
  bool ok_ = false, has_ended_ = false;
  std::string in_;
};

}  // namespace millrace::serve
