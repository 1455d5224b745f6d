// The client of `bench serve` and `replay`: many requests at once over plain sockets, one thread
// and one epoll. Connections are kept alive and used again. Of a stream it keeps when each event
// with text came, and what says how long the server took; the text itself only of chats that ask
// for it.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "cli/sse_reader.h"

namespace millrace::cli {

// One HTTP response out of bytes as they come.
class ResponseReader {
 public:
  // Takes the bytes; false where they are no HTTP response.
  bool take(std::string_view bytes);
  int status() const { return status_; }  // 0: the head is not complete
  bool is_stream() const { return is_stream_; }
  bool is_done() const { return phase_ == Phase::done; }
  // What came of the body and was not removed by the caller yet.
  std::string& body() { return body_; }

 private:
  enum class Phase { head, length, chunk_size, chunk, chunk_end, trailer, done };

  bool step();
  bool read_head();
  bool read_chunk_size();
  bool read_bytes(Phase next);
  bool take_line(std::string& line);

  Phase phase_ = Phase::head;
  std::string in_ = {}, body_ = {};
  size_t n_left_ = 0;
  int status_ = 0;
  bool is_stream_ = false, is_bad_ = false;
};

// What came back for one request.
struct Fetched {
  int status = 0;
  int64_t sent_ns = 0, ended_ns = 0;  // 0: not yet
  std::vector<int64_t> text_ns = {};  // of a stream: when each event with text came
  std::string body = {};              // of a stream: the event with its timings
  std::string text = {};              // of a chat that keeps it
  std::string failure = {};

  bool has_ended() const { return ended_ns != 0; }
  bool ok() const { return status == 200 && failure.empty(); }
  double seconds() const { return static_cast<double>(ended_ns - sent_ns) * 1e-9; }
};

class LoadClient {
 public:
  using Id = size_t;

  // http://HOST:PORT
  static Result<std::unique_ptr<LoadClient>> to(const std::string& url);
  ~LoadClient();
  LoadClient(const LoadClient&) = delete;
  LoadClient& operator=(const LoadClient&) = delete;

  struct More {
    std::string headers = {};  // lines that end with \r\n
    bool keeps_chat = false;   // of a stream of chat completions: its text, usage and timings
  };
  // An empty body is a GET.
  Result<Id> send(std::string_view path, std::string_view body, const More& more);
  Result<Id> send(std::string_view path, std::string_view body) { return send(path, body, More()); }
  const Fetched& at(Id id) const { return *fetched_[id]; }
  // Closes its connection, which cancels it.
  void drop(Id id);
  // Reads what comes until `enough`, or until the time is over: then it says so with `unavailable`.
  Status wait(const std::function<bool()>& enough, double seconds);
  // Only passes the time.
  Status idle(double seconds);
  // One request, answered with 200.
  Result<Fetched> fetch(std::string_view path, std::string_view body);

 private:
  struct Connection {
    int fd = -1;
    Id id = 0;
    bool is_busy = false, keeps_chat = false;
    ResponseReader reader = {};
    SseReader events = {};  // of a chat
  };

  LoadClient() = default;
  Result<Connection*> connection();
  Status connect(Connection& to);
  void close(Connection& connection);
  void read(Connection& connection);
  void take(Connection& connection, std::string_view bytes);
  void take_events(std::string& body, Fetched& to);
  static bool take_chat(Connection& connection, Fetched& to);
  void end(Connection& connection, std::string failure);

  std::string host_, port_;
  int epoll_ = -1;
  std::vector<std::unique_ptr<Connection>> connections_;
  std::vector<std::unique_ptr<Fetched>> fetched_;
};

}  // namespace millrace::cli
