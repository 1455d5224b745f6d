#include "cli/bench_serve_client.h"

#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/clock.h"
#include "base/json_text.h"
#include "base/utf8.h"
#include "cli/interrupt.h"
#include "files/json.h"

namespace millrace::cli {
namespace {

using nlohmann::json;

constexpr double kPatienceS = 120;  // for one answer: others may use the machine
// Far above any real answer, far below what would hurt.
constexpr size_t kMaxHeadBytes = size_t{1} << 20, kMaxAnswerBytes = size_t{64} << 20;

std::string lower(std::string_view text) {
  std::string out(text);
  for (char& c : out)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return out;
}

bool parse_number(std::string_view text, int base, size_t& to) {
  const auto [end, why] = std::from_chars(text.data(), text.data() + text.size(), to, base);
  return why == std::errc() && end != text.data();
}

// The value of a header in a head of lower case; empty where it is missing.
std::string_view header(std::string_view head, std::string_view name) {
  const size_t at = head.find(fmt::format("\r\n{}:", name));
  if (at == std::string_view::npos) return {};
  std::string_view value = head.substr(at + name.size() + 3);
  value = value.substr(0, value.find("\r\n"));
  value.remove_prefix(std::min(value.find_first_not_of(' '), value.size()));
  return value;
}

bool send_all(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t n = ::send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (n > 0) {
      bytes.remove_prefix(static_cast<size_t>(n));
      continue;
    }
    if (n < 0 && errno == EINTR) continue;
    if (n == 0 || errno != EAGAIN) return false;
    pollfd one{.fd = fd, .events = POLLOUT, .revents = 0};
    if (poll(&one, 1, 10000) != 1) return false;
  }
  return true;
}

// What it has of this name; null where it is no object or has nothing.
const json& member(const json& object, const char* name) {
  static const json none;
  const auto it = object.is_object() ? object.find(name) : object.end();
  return it == object.end() ? none : *it;
}

// Text of one event of a chat, and of its last events usage and timings, merged.
void take_chat_event(const std::string& event, Fetched& to) {
  if (event == "[DONE]") return;
  auto said = parse_json(event, "an event");
  if (!said.ok() || !said->is_object() || !member(said.value(), "error").is_null()) {
    to.failure = printable(event, 300);
    return;
  }
  const json& choices = member(said.value(), "choices");
  for (size_t i = 0; choices.is_array() && i < choices.size(); ++i) {
    for (const char* name : {"content", "reasoning_content"}) {
      const json& text = member(member(choices[i], "delta"), name);
      if (!text.is_string() || text == "") continue;
      to.text += text.get_ref<const std::string&>();
      to.text_ns.push_back(now_ns());
    }
  }
  for (const char* name : {"usage", "timings"}) {
    if (!member(said.value(), name).is_object()) continue;
    json closing = to.body.empty() ? json::object() : json::parse(to.body);
    closing[name] = member(said.value(), name);
    to.body = json_text(closing);
  }
}

}  // namespace

bool ResponseReader::take(std::string_view bytes) {
  in_.append(bytes);
  while (step()) {
  }
  return !is_bad_;
}

// False where more bytes are needed, or none are.
bool ResponseReader::step() {
  if (is_bad_) return false;
  std::string line;
  switch (phase_) {
    case Phase::head:
      return read_head();
    case Phase::length:
      return read_bytes(Phase::done);
    case Phase::chunk_size:
      return read_chunk_size();
    case Phase::chunk:
      return read_bytes(Phase::chunk_end);
    case Phase::chunk_end:
      if (!take_line(line)) return false;
      phase_ = Phase::chunk_size;
      return true;
    case Phase::trailer:
      if (!take_line(line)) return false;
      if (line.empty()) phase_ = Phase::done;
      return true;
    case Phase::done:
      return false;
  }
  return false;
}

bool ResponseReader::read_head() {
  const size_t end = in_.find("\r\n\r\n");
  is_bad_ = std::min(end, in_.size()) > kMaxHeadBytes;
  if (is_bad_ || end == std::string::npos) return false;
  const std::string head = lower(std::string_view(in_).substr(0, end + 2));
  in_.erase(0, end + 4);
  size_t status = 0;
  if (!head.starts_with("http/1.1 ") || !parse_number(std::string_view(head).substr(9), 10, status))
    is_bad_ = true;
  status_ = static_cast<int>(status);
  is_stream_ = header(head, "content-type").starts_with("text/event-stream");
  if (header(head, "transfer-encoding") == "chunked")
    phase_ = Phase::chunk_size;
  else if (parse_number(header(head, "content-length"), 10, n_left_))
    phase_ = Phase::length;
  else
    is_bad_ = true;  // one that ends with its connection is of no use here
  return !is_bad_;
}

bool ResponseReader::read_chunk_size() {
  std::string line;
  if (!take_line(line)) return false;
  if (!parse_number(line, 16, n_left_)) is_bad_ = true;
  phase_ = n_left_ == 0 ? Phase::trailer : Phase::chunk;
  return !is_bad_;
}

bool ResponseReader::read_bytes(Phase next) {
  const size_t n = std::min(n_left_, in_.size());
  body_.append(in_, 0, n);
  in_.erase(0, n);
  n_left_ -= n;
  if (n_left_ > 0) return false;
  phase_ = next;
  return true;
}

bool ResponseReader::take_line(std::string& line) {
  const size_t end = in_.find("\r\n");
  is_bad_ = std::min(end, in_.size()) > kMaxHeadBytes;
  if (is_bad_ || end == std::string::npos) return false;
  line = in_.substr(0, end);
  in_.erase(0, end + 2);
  return true;
}

Result<std::unique_ptr<LoadClient>> LoadClient::to(const std::string& url) {
  constexpr std::string_view kScheme = "http://";
  std::string rest = url.starts_with(kScheme) ? url.substr(kScheme.size()) : "";
  while (rest.ends_with('/')) rest.pop_back();
  const size_t colon = rest.rfind(':');
  if (rest.empty() || colon == 0 || rest.find('/') != std::string::npos)
    return error(Code::invalid_argument, "--url '{}' is not of the form http://HOST:PORT", url);
  std::unique_ptr<LoadClient> out(new LoadClient());
  out->host_ = rest.substr(0, colon);
  out->port_ = colon == std::string::npos ? "80" : rest.substr(colon + 1);
  out->epoll_ = epoll_create1(EPOLL_CLOEXEC);
  if (out->epoll_ < 0) return error(Code::io_error, "epoll failed: {}", strerror(errno));
  return out;
}

LoadClient::~LoadClient() {
  for (auto& connection : connections_) close(*connection);
  if (epoll_ >= 0) ::close(epoll_);
}

Status LoadClient::connect(Connection& to) {
  addrinfo hints{}, *found = nullptr;
  hints.ai_socktype = SOCK_STREAM;
  if (const int failed = getaddrinfo(host_.c_str(), port_.c_str(), &hints, &found); failed != 0)
    return error(Code::not_found, "no such host or port: {}:{}: {}", host_, port_,
                 gai_strerror(failed));
  int why = 0;
  for (const addrinfo* one = found; one != nullptr && to.fd < 0; one = one->ai_next) {
    to.fd = socket(one->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (to.fd >= 0 && ::connect(to.fd, one->ai_addr, one->ai_addrlen) == 0) break;
    why = errno;
    if (to.fd >= 0) ::close(std::exchange(to.fd, -1));
  }
  freeaddrinfo(found);
  if (to.fd < 0)
    return error(Code::unavailable, "cannot connect to {}:{}: {}", host_, port_, strerror(why));
  const int yes = 1;
  setsockopt(to.fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
  fcntl(to.fd, F_SETFL, O_NONBLOCK);
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.ptr = &to;
  if (epoll_ctl(epoll_, EPOLL_CTL_ADD, to.fd, &event) != 0)
    return error(Code::io_error, "epoll failed: {}", strerror(errno));
  return {};
}

// The least busy way: one that is idle, else a new one.
Result<LoadClient::Connection*> LoadClient::connection() {
  for (auto& one : connections_)
    if (one->fd >= 0 && !one->is_busy) return one.get();
  auto fresh = std::make_unique<Connection>();
  MILLRACE_TRY(connect(*fresh));
  connections_.push_back(std::move(fresh));
  return connections_.back().get();
}

Result<LoadClient::Id> LoadClient::send(std::string_view path, std::string_view body,
                                        const More& more) {
  MILLRACE_ASSIGN(Connection* const to, connection());
  const std::string request =
      fmt::format("{} {} HTTP/1.1\r\nHost: {}:{}\r\n{}{}\r\n{}", body.empty() ? "GET" : "POST",
                  path, host_, port_, more.headers,
                  body.empty() ? ""
                               : fmt::format("Content-Type: application/json\r\n"
                                             "Content-Length: {}\r\n",
                                             body.size()),
                  body);
  fetched_.push_back(std::make_unique<Fetched>());
  to->id = fetched_.size() - 1;
  to->is_busy = true;
  to->keeps_chat = more.keeps_chat;
  to->reader = {};
  to->events = {};
  fetched_.back()->sent_ns = now_ns();
  if (!send_all(to->fd, request)) end(*to, "the server closed the connection");
  return fetched_.size() - 1;
}

void LoadClient::close(Connection& connection) {
  if (connection.fd >= 0) ::close(std::exchange(connection.fd, -1));
}

void LoadClient::drop(Id id) {
  for (auto& one : connections_)
    if (one->is_busy && one->id == id) end(*one, "dropped");
}

void LoadClient::end(Connection& connection, std::string failure) {
  if (!failure.empty()) close(connection);
  if (!std::exchange(connection.is_busy, false)) return;
  Fetched& to = *fetched_[connection.id];
  to.ended_ns = now_ns();
  if (to.failure.empty()) to.failure = std::move(failure);
}

// Looks at what a token costs the least to look at: an event is not parsed unless it is the last.
void LoadClient::take_events(std::string& body, Fetched& to) {
  for (size_t end = body.find("\n\n"); end != std::string::npos; end = body.find("\n\n")) {
    const std::string_view event = std::string_view(body).substr(0, end);
    constexpr std::string_view kText = "\"text\":\"";
    const size_t text = event.find(kText);
    if (event.find("\"error\":") != std::string_view::npos)
      to.failure = event;
    else if (event.find("\"timings\":") != std::string_view::npos)
      to.body = event.substr(std::min(event.find('{'), event.size()));
    else if (text != std::string_view::npos && event.substr(text + kText.size(), 1) != "\"")
      to.text_ns.push_back(now_ns());
    body.erase(0, end + 2);
  }
}

bool LoadClient::take_chat(Connection& connection, Fetched& to) {
  std::string& body = connection.reader.body();
  const bool is_good = connection.events.take(
      body, [&](const SseReader::Event& event) { take_chat_event(event.data, to); });
  body.clear();
  return is_good;
}

void LoadClient::take(Connection& connection, std::string_view bytes) {
  if (!connection.is_busy) return close(connection);  // it said something unasked
  if (!connection.reader.take(bytes)) return end(connection, "not an HTTP response");
  Fetched& to = *fetched_[connection.id];
  to.status = connection.reader.status();
  bool is_bounded = true;
  if (connection.reader.is_stream()) {
    if (connection.keeps_chat)
      is_bounded = take_chat(connection, to);
    else
      take_events(connection.reader.body(), to);
  }
  if (!is_bounded || connection.reader.body().size() + to.text.size() > kMaxAnswerBytes)
    return end(connection, "the answer is too long");
  if (!connection.reader.is_done()) return;
  if (!connection.reader.is_stream()) to.body = std::move(connection.reader.body());
  end(connection, "");
}

void LoadClient::read(Connection& connection) {
  char bytes[65536];
  const ssize_t n = recv(connection.fd, bytes, sizeof bytes, 0);
  if (n > 0) return take(connection, std::string_view(bytes, static_cast<size_t>(n)));
  if (n == 0 || (errno != EAGAIN && errno != EINTR))
    end(connection, "the server closed the connection");
}

Status LoadClient::wait(const std::function<bool()>& enough, double seconds) {
  const std::atomic<bool>& stop = catch_interrupts();
  const int64_t until_ns = now_ns() + static_cast<int64_t>(seconds * 1e9);
  while (!enough()) {
    if (stop) return error(Code::cancelled, "interrupted");
    const int64_t left_ns = until_ns - now_ns();
    if (left_ns <= 0) return error(Code::unavailable, "no answer within {:g} s", seconds);
    epoll_event events[256];
    const int left_ms = static_cast<int>(std::min<int64_t>(left_ns / 1000000 + 1, 100));
    const int n = epoll_wait(epoll_, events, 256, left_ms);
    for (int i = 0; i < n; ++i) read(*static_cast<Connection*>(events[i].data.ptr));
  }
  return {};
}

Status LoadClient::idle(double seconds) {
  const Status status = wait([] { return false; }, seconds);
  return status.code() == Code::unavailable ? Status() : status;
}

Result<Fetched> LoadClient::fetch(std::string_view path, std::string_view body) {
  MILLRACE_ASSIGN(const Id id, send(path, body));
  MILLRACE_TRY(wait([&] { return at(id).has_ended(); }, kPatienceS));
  const Fetched& out = at(id);
  if (!out.ok())
    return error(Code::unavailable, "{} was answered with status {}: {}{}", path, out.status,
                 out.failure, out.body);
  return out;
}

}  // namespace millrace::cli
