// The server with real sockets: what it answers, streams, and how it stops. Named for TSan: its
// threads meet in all of them.
#include "serve/http_server.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <thread>

#include "serve/http_test_client.h"

namespace millrace::serve {
namespace {

// Replies that a handler put aside, for the test to go on with.
class Shelf {
 public:
  void put(std::shared_ptr<Reply> reply) {
    const std::lock_guard lock(mutex_);
    replies_.push_back(std::move(reply));
    changed_.notify_all();
  }
  std::shared_ptr<Reply> take() {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, std::chrono::seconds(20), [this] { return !replies_.empty(); });
    if (replies_.empty()) return nullptr;
    auto out = std::move(replies_.front());
    replies_.erase(replies_.begin());
    return out;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::shared_ptr<Reply>> replies_;
};

class Count {
 public:
  void add() {
    const std::lock_guard lock(mutex_);
    ++n_;
    changed_.notify_all();
  }
  bool reaches(int n) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, std::chrono::seconds(20), [&] { return n_ >= n; });
  }
  int now() {
    const std::lock_guard lock(mutex_);
    return n_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  int n_ = 0;
};

class HttpServerThreads : public testing::Test {
 protected:
  void start(HttpServerOptions options = {}) {
    if (options.port == 8080) options.port = 0;
    options.on_request_end = [this](const RequestEnd& end) {
      const std::lock_guard lock(mutex_);
      ends_.push_back(end);
      n_ends_.add();
    };
    std::vector<Route> routes = {
        {"GET", "/hello", Access::open,
         [](HttpRequest, std::shared_ptr<Reply> reply) { reply->send(200, {}, "\"hi\""); }},
        {"POST", "/echo", Access::key,
         [](HttpRequest request, std::shared_ptr<Reply> reply) {
           reply->send(200, {{"Content-Type", "text/plain"}}, request.body);
         }},
        {"POST", "/later", Access::key,
         [this](HttpRequest, std::shared_ptr<Reply> reply) { shelf_.put(std::move(reply)); }},
        {"POST", "/throws", Access::open, [](HttpRequest, std::shared_ptr<Reply>) { throw 1; }},
        {"GET", "/stream", Access::open,
         [](HttpRequest, std::shared_ptr<Reply> reply) {
           reply->begin_events({});
           reply->write("data: 1\n\n");
           reply->end();
         }},
        {"POST", "/forgets", Access::open, [](HttpRequest, std::shared_ptr<Reply>) {}},
    };
    auto server = HttpServer::start(std::move(options), std::move(routes));
    ASSERT_TRUE(server.ok()) << server.status().message();
    server_ = std::move(*server);
  }
  TestClient client() { return TestClient(server_->port()); }
  static std::string get(std::string_view path) {
    return fmt::format("GET {} HTTP/1.1\r\nHost: localhost\r\n\r\n", path);
  }
  static std::string post(std::string_view path, std::string_view body = "") {
    return fmt::format("POST {} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {}\r\n\r\n{}", path,
                       body.size(), body);
  }

  Shelf shelf_;
  std::mutex mutex_;
  std::vector<RequestEnd> ends_;
  Count n_ends_;
  std::unique_ptr<HttpServer> server_;
};

TEST_F(HttpServerThreads, AnswersAndKeepsTheConnection) {
  start();
  TestClient client = this->client();
  for (int i = 0; i < 3; ++i) {
    const TestReply reply = client.ask(get("/hello"));
    EXPECT_EQ(reply.status, 200);
    EXPECT_EQ(reply.body, "\"hi\"");
    EXPECT_TRUE(reply.has("Content-Type: application/json\r\n")) << reply.head;
    EXPECT_TRUE(reply.has("X-Request-Id: req_")) << reply.head;
  }
  const TestReply echo = client.ask(post("/echo", "abc"));
  EXPECT_EQ(echo.body, "abc");
  EXPECT_TRUE(echo.has("Content-Type: text/plain\r\n"));
  ASSERT_TRUE(n_ends_.reaches(4));
  EXPECT_EQ(ends_[3].status, 200);
  EXPECT_EQ(ends_[3].request.path, "/echo");
  EXPECT_GT(ends_[3].n_bytes, 3);
  EXPECT_FALSE(ends_[3].is_gone);
}

TEST_F(HttpServerThreads, EchoesAGoodRequestId) {
  start();
  const auto ask = [this](const std::string& id) {
    return client().ask("GET /hello HTTP/1.1\r\nHost: localhost\r\nX-Request-Id: " + id +
                        "\r\n\r\n");
  };
  EXPECT_TRUE(ask("abc-1").has("X-Request-Id: abc-1\r\n"));
  EXPECT_TRUE(ask(std::string(128, 'a')).has(std::string(128, 'a')));
  EXPECT_TRUE(ask(std::string(129, 'a')).has("X-Request-Id: req_"));
  EXPECT_TRUE(ask("two words").has("X-Request-Id: req_"));
}

TEST_F(HttpServerThreads, AnswersPipelinedRequestsInOrder) {
  start();
  TestClient client = this->client();
  client.send(post("/later") + post("/echo", "1") + get("/hello") + post("/echo", "2"));
  const auto reply = shelf_.take();
  ASSERT_NE(reply, nullptr);
  reply->send(200, {}, "\"late\"");
  EXPECT_EQ(client.reply().body, "\"late\"");
  EXPECT_EQ(client.reply().body, "1");
  EXPECT_EQ(client.reply().body, "\"hi\"");
  EXPECT_EQ(client.reply().body, "2");
}

TEST_F(HttpServerThreads, AnswersAClientThatHasClosedItsSide) {
  start();
  TestClient client = this->client();
  client.send(get("/hello") + get("/hello"));
  client.close_sending();
  EXPECT_EQ(client.reply().status, 200);
  EXPECT_EQ(client.reply().status, 200);
  EXPECT_TRUE(client.is_closed());
}

TEST_F(HttpServerThreads, TakesBodiesInAnyForm) {
  start();
  const std::string head = "POST /echo HTTP/1.1\r\nHost: localhost\r\n";
  EXPECT_EQ(client()
                .ask(head + "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2;x=y\r\nde\r\n0\r\n"
                            "Authorization: trailer\r\n\r\n")
                .body,
            "abcde");
  TestClient slow = client();
  for (const char c : head + "Content-Length: 3\r\n\r\nabc") slow.send({&c, 1});
  EXPECT_EQ(slow.reply().body, "abc");
  const std::string large(3 << 20, 'x');
  EXPECT_EQ(client().ask(post("/echo", large)).body, large);
  EXPECT_EQ(client().ask(head + "\r\n").body, "");  // as curl -X POST sends it
}

TEST_F(HttpServerThreads, SaysContinueBeforeTheBodyIsSent) {
  start();
  TestClient client = this->client();
  client.send(
      "POST /echo HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\nExpect: "
      "100-continue\r\n\r\n");
  EXPECT_EQ(client.read_through("\r\n\r\n"), "HTTP/1.1 100 Continue\r\n\r\n");
  EXPECT_EQ(client.ask("ok").body, "ok");
}

TEST_F(HttpServerThreads, SpeaksToHttp10AndClosesWhenAsked) {
  start();
  TestClient old = client();
  EXPECT_EQ(old.ask("GET /hello HTTP/1.0\r\n\r\n").body, "\"hi\"");
  EXPECT_TRUE(old.is_closed());
  TestClient polite = client();
  const TestReply reply =
      polite.ask("GET /hello HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
  EXPECT_EQ(reply.body, "\"hi\"");
  EXPECT_TRUE(reply.has("Connection: close\r\n"));
  EXPECT_TRUE(polite.is_closed());
}

TEST_F(HttpServerThreads, AnswersHeadAndOptions) {
  start();
  TestClient client = this->client();
  client.send("HEAD /hello HTTP/1.1\r\nHost: localhost\r\n\r\n");
  const TestReply head = client.reply(true);
  EXPECT_EQ(head.status, 200);
  EXPECT_TRUE(head.has("Content-Length: 4\r\n"));
  const TestReply options = client.ask("OPTIONS /hello HTTP/1.1\r\nHost: localhost\r\n\r\n");
  EXPECT_EQ(options.status, 204);
  EXPECT_TRUE(options.has("Allow: GET, HEAD, OPTIONS\r\n")) << options.head;
  EXPECT_EQ(client.ask("OPTIONS * HTTP/1.1\r\nHost: localhost\r\n\r\n").status, 204);
  EXPECT_EQ(client.ask(get("/hello")).status, 200);
}

TEST_F(HttpServerThreads, StreamsEvents) {
  start();
  TestClient client = this->client();
  client.send(post("/later"));
  const auto reply = shelf_.take();
  reply->begin_events({{"X-Model", "tiny"}});
  const std::string head = client.read_through("\r\n\r\n");
  EXPECT_NE(head.find("Content-Type: text/event-stream\r\n"), std::string::npos) << head;
  EXPECT_NE(head.find("Cache-Control: no-cache\r\n"), std::string::npos);
  EXPECT_NE(head.find("X-Accel-Buffering: no\r\n"), std::string::npos);
  EXPECT_NE(head.find("X-Model: tiny\r\n"), std::string::npos);
  reply->write("data: 1\n\n");
  EXPECT_EQ(client.read_chunk(), "data: 1\n\n");
  reply->write("data: 2\n\n");
  EXPECT_EQ(client.read_chunk(), "data: 2\n\n");
  reply->end();
  EXPECT_EQ(client.read_chunk(), "");
  EXPECT_EQ(client.ask(get("/hello")).status, 200);
}

TEST_F(HttpServerThreads, StreamsToHttp10WithoutChunks) {
  start();
  TestClient client = this->client();
  client.send("POST /later HTTP/1.0\r\nContent-Length: 0\r\n\r\n");
  const auto reply = shelf_.take();
  reply->begin_events({});
  reply->write("data: 1\n\n");
  reply->end();
  const TestReply all = client.reply();
  EXPECT_FALSE(all.has("chunked"));
  EXPECT_EQ(all.body, "data: 1\n\n");
}

TEST_F(HttpServerThreads, SendsCommentsIntoSilence) {
  start({.keep_alive_s = 0.05});
  TestClient client = this->client();
  client.send(post("/later"));
  const auto reply = shelf_.take();
  reply->begin_events({});
  client.read_through("\r\n\r\n");
  EXPECT_EQ(client.read_chunk(), ": keep-alive\n\n");
  EXPECT_EQ(client.read_chunk(), ": keep-alive\n\n");
  reply->write("data: 1\n\n");
  while (client.read_chunk() == ": keep-alive\n\n") {
  }
  reply->end();
  client.read_chunks();
  EXPECT_EQ(client.ask(get("/hello")).status, 200);
}

TEST_F(HttpServerThreads, AReplyThatNobodyFinishesIsA500) {
  start();
  EXPECT_EQ(client().ask(post("/throws")).status, 500);
  TestClient client = this->client();
  const TestReply reply = client.ask(post("/forgets"));
  EXPECT_EQ(reply.status, 500);
  EXPECT_NE(reply.body.find("{\"error\""), std::string::npos);
  EXPECT_TRUE(client.is_closed());
}

TEST_F(HttpServerThreads, AStreamThatNobodyFinishesBreaksOff) {
  start();
  TestClient client = this->client();
  client.send(post("/later"));
  auto reply = shelf_.take();
  reply->begin_events({});
  reply->write("data: 1\n\n");
  client.read_through("data: 1\n\n");
  reply.reset();
  EXPECT_EQ(client.read_to_end(), "\r\n");  // without the last chunk
}

TEST_F(HttpServerThreads, TellsOnceThatAClientWentAway) {
  start();
  for (const bool streams : {false, true}) {
    for (const bool resets : {false, true}) {
      TestClient client = this->client();
      client.send(post("/later"));
      const auto reply = shelf_.take();
      ASSERT_NE(reply, nullptr);
      Count gone;
      reply->on_gone([&] { gone.add(); });
      if (streams) {
        reply->begin_events({});
        client.read_through("\r\n\r\n");
      }
      EXPECT_FALSE(reply->is_gone());
      resets ? client.reset() : client.close();
      ASSERT_TRUE(gone.reaches(1));
      EXPECT_TRUE(reply->is_gone());
      for (int i = 0; i < 10; ++i) reply->write("data: 1\n\n");
      reply->end();
      EXPECT_EQ(gone.now(), 1);
    }
  }
}

TEST_F(HttpServerThreads, TellsOfAClientThatHadGoneBefore) {
  start();
  TestClient client = this->client();
  client.send(post("/later"));
  const auto reply = shelf_.take();
  client.close();
  Count gone;
  while (!reply->is_gone()) std::this_thread::yield();
  reply->on_gone([&] { gone.add(); });
  EXPECT_TRUE(gone.reaches(1));
}

TEST_F(HttpServerThreads, ACompleteReplyIsNotGone) {
  start();
  TestClient client = this->client();
  client.send(post("/later"));
  const auto reply = shelf_.take();
  Count gone;
  reply->on_gone([&] { gone.add(); });
  reply->send(200, {}, "{}");
  EXPECT_EQ(client.reply().status, 200);
  client.close();
  server_->stop(5);
  EXPECT_EQ(gone.now(), 0);
  EXPECT_FALSE(reply->is_gone());
}

TEST_F(HttpServerThreads, DropsAClientThatDoesNotRead) {
  start({.max_unread_bytes = 256 << 10});
  TestClient client(server_->port(), 4096);
  client.send(post("/later"));
  const auto reply = shelf_.take();
  Count gone;
  reply->on_gone([&] { gone.add(); });
  reply->begin_events({});
  const std::string piece(64 << 10, 'x');
  for (int i = 0; i < 2000 && !reply->is_gone(); ++i) {
    reply->write(piece);
    std::this_thread::sleep_for(std::chrono::microseconds(200));
  }
  EXPECT_TRUE(gone.reaches(1));
  ASSERT_TRUE(n_ends_.reaches(1));
  EXPECT_TRUE(ends_[0].is_gone);
}

TEST_F(HttpServerThreads, ReadersThatAreSlowButReadGetEverything) {
  start();
  TestClient client(server_->port(), 4096);
  client.send(post("/later"));
  const auto reply = shelf_.take();
  reply->begin_events({});
  const std::string piece(64 << 10, 'x');
  for (int i = 0; i < 64; ++i) reply->write(piece);
  reply->end();
  EXPECT_EQ(client.reply().body.size(), 64u * piece.size());
}

TEST_F(HttpServerThreads, DropsAClientThatTakesNothingOfAWholeReply) {
  start({.write_timeout_s = 0.1});
  TestClient client(server_->port(), 4096);
  client.send(post("/later"));
  shelf_.take()->send(200, {}, std::string(16 << 20, 'x'));
  ASSERT_TRUE(n_ends_.reaches(1));
  EXPECT_TRUE(ends_[0].is_gone);
  EXPECT_EQ(ends_[0].status, 200);
  EXPECT_LT(ends_[0].n_bytes, 16 << 20);
}

TEST_F(HttpServerThreads, ReportsRefusedAndForsakenRequests) {
  start();
  EXPECT_EQ(client().ask(get("/none?key=1")).status, 404);
  ASSERT_TRUE(n_ends_.reaches(1));
  EXPECT_EQ(ends_[0].status, 404);
  EXPECT_EQ(ends_[0].request.path, "/none");
  TestClient client = this->client();
  client.send(post("/later", "secret"));
  auto reply = shelf_.take();
  client.reset();
  while (!reply->is_gone()) std::this_thread::yield();
  reply.reset();
  ASSERT_TRUE(n_ends_.reaches(2));
  EXPECT_EQ(ends_[1].status, 499);
  EXPECT_TRUE(ends_[1].is_gone);
  EXPECT_EQ(ends_[1].request.body, "");
}

TEST_F(HttpServerThreads, AStreamHasAHeadToo) {
  start();
  TestClient client = this->client();
  client.send("HEAD /stream HTTP/1.1\r\nHost: localhost\r\n\r\n");
  const TestReply head = client.reply(true);
  EXPECT_TRUE(head.has("text/event-stream")) << head.head;
  EXPECT_EQ(client.ask(get("/hello")).body, "\"hi\"");
  EXPECT_EQ(client.ask(get("/stream")).body, "data: 1\n\n");
}

// Clients that leave at any moment, while two threads write to them.
TEST_F(HttpServerThreads, ClientsComeAndGo) {
  start();
  constexpr int kClients = 200;
  std::vector<std::atomic<int>> gone(kClients);
  std::atomic<int> next{0};
  const auto write_all = [&] {
    for (int i = next++; i < kClients; i = next++) {
      const auto reply = shelf_.take();
      ASSERT_NE(reply, nullptr);
      reply->on_gone([&gone, i] { ++gone[static_cast<size_t>(i)]; });
      reply->begin_events({});
      for (int piece = 0; piece < 20; ++piece) reply->write("data: x\n\n");
      reply->end();
    }
  };
  std::thread a(write_all), b(write_all);
  for (int i = 0; i < kClients; ++i) {
    TestClient client = this->client();
    client.send(post("/later"));
    if (i % 3 == 0) client.read_through("data: x");
    i % 2 == 0 ? client.close() : client.reset();
  }
  a.join();
  b.join();
  server_->stop(5);
  for (const auto& n : gone) EXPECT_LE(n, 1);
}

TEST_F(HttpServerThreads, ListensOnAUnixSocket) {
  const std::string path = testing::TempDir() + fmt::format("millrace-{}.sock", getpid());
  start({.port = -1, .unix_path = path});
  struct stat info {};
  ASSERT_EQ(stat(path.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600u);
  EXPECT_EQ(TestClient(path).ask("GET /hello HTTP/1.1\r\nHost: anything\r\n\r\n").status, 200);
  const auto second = HttpServer::start({.port = -1, .unix_path = path}, {});
  EXPECT_FALSE(second.ok());
  server_->stop(0);
  EXPECT_FALSE(std::filesystem::exists(path));
}

TEST_F(HttpServerThreads, SaysWhereItCannotListen) {
  start();
  const auto second = HttpServer::start({.port = server_->port()}, {});
  ASSERT_FALSE(second.ok());
  EXPECT_NE(second.status().message().find("--port"), std::string::npos);
  EXPECT_FALSE(HttpServer::start({.port = 70000}, {}).ok());
  EXPECT_FALSE(HttpServer::start({.address = "no such host", .port = 0}, {}).ok());
  EXPECT_FALSE(HttpServer::start({.port = -1}, {}).ok());
}

TEST_F(HttpServerThreads, NeedsKeysWhereOthersCanReachIt) {
  EXPECT_FALSE(HttpServer::start({.address = "0.0.0.0", .port = 0}, {}).ok());
  EXPECT_TRUE(HttpServer::start({.address = "0.0.0.0", .port = 0, .allows_anyone = true}, {}).ok());
  auto keys = Keys::from_text("a:sk-alice-0123456789", "test");
  EXPECT_TRUE(HttpServer::start({.address = "0.0.0.0", .port = 0, .keys = *keys}, {}).ok());
}

TEST_F(HttpServerThreads, TakesOverAStaleSocketAndNoOtherFile) {
  const std::string path = testing::TempDir() + fmt::format("millrace-stale-{}.sock", getpid());
  const int fd = socket(AF_UNIX, SOCK_STREAM, 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  path.copy(address.sun_path, sizeof address.sun_path - 1);
  ASSERT_EQ(bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  close(fd);
  start({.port = -1, .unix_path = path});
  server_.reset();
  std::ofstream(path) << "precious";
  EXPECT_FALSE(HttpServer::start({.port = -1, .unix_path = path}, {}).ok());
  EXPECT_TRUE(std::filesystem::remove(path));
}

// No file descriptor is left for the server to accept with: it waits without spinning, and goes on.
TEST_F(HttpServerThreads, OutlivesALackOfFiles) {
  start();
  rlimit limit{};
  getrlimit(RLIMIT_NOFILE, &limit);
  const rlimit low{.rlim_cur = 128, .rlim_max = limit.rlim_max};
  setrlimit(RLIMIT_NOFILE, &low);
  std::vector<int> files;
  for (int fd = open("/dev/null", O_RDONLY); fd >= 0; fd = open("/dev/null", O_RDONLY))
    files.push_back(fd);
  ASSERT_FALSE(files.empty());
  close(files.back());
  files.pop_back();
  TestClient client = this->client();
  ASSERT_TRUE(client.ok());
  client.send(get("/hello"));
  const std::clock_t before = std::clock();
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  EXPECT_LT(std::clock() - before, CLOCKS_PER_SEC / 5);
  for (const int fd : files) close(fd);
  EXPECT_EQ(client.reply().status, 200);
  setrlimit(RLIMIT_NOFILE, &limit);
}

TEST_F(HttpServerThreads, DrainsWhatIsRunning) {
  start();
  TestClient idle = client(), running = client();
  EXPECT_EQ(idle.ask(get("/hello")).status, 200);
  running.send(post("/later") + get("/hello"));
  const auto reply = shelf_.take();
  reply->begin_events({});
  std::thread stopping([this] { server_->stop(20); });
  EXPECT_TRUE(idle.is_closed());
  EXPECT_FALSE(client().ask(get("/hello")).status == 200);
  reply->write("data: 1\n\n");
  reply->end();
  EXPECT_EQ(running.reply().body, "data: 1\n\n");
  EXPECT_TRUE(running.is_closed());
  stopping.join();
}

TEST_F(HttpServerThreads, DrainingEndsAndRepliesOutliveTheServer) {
  start();
  TestClient client = this->client();
  client.send(post("/later"));
  const auto reply = shelf_.take();
  Count gone;
  reply->on_gone([&] { gone.add(); });
  reply->begin_events({});
  server_->stop(0.05);
  server_.reset();
  EXPECT_EQ(gone.now(), 1);
  EXPECT_TRUE(reply->is_gone());
  reply->write("data: 1\n\n");
  Count late;
  reply->on_gone([&] { late.add(); });
  EXPECT_EQ(late.now(), 1);
  reply->end();
}

TEST_F(HttpServerThreads, HoldsFiveHundredStreams) {
  start();
  constexpr int kStreams = 500;
  std::vector<TestClient> clients;
  std::vector<std::shared_ptr<Reply>> replies;
  for (int i = 0; i < kStreams; ++i) {
    clients.emplace_back(server_->port());
    ASSERT_TRUE(clients.back().ok()) << i;
    clients.back().send(post("/later"));
  }
  for (int i = 0; i < kStreams; ++i) replies.push_back(shelf_.take());
  EXPECT_EQ(server_->n_connections(), kStreams);
  std::vector<std::thread> writers;
  for (size_t first = 0; first < 2; ++first)
    writers.emplace_back([&replies, first] {
      for (size_t i = first; i < replies.size(); i += 2) replies[i]->begin_events({});
      for (int piece = 0; piece < 3; ++piece)
        for (size_t i = first; i < replies.size(); i += 2) replies[i]->write("data: x\n\n");
      for (size_t i = first; i < replies.size(); i += 2) replies[i]->end();
    });
  for (auto& writer : writers) writer.join();
  for (auto& client : clients) EXPECT_EQ(client.reply().body, "data: x\n\ndata: x\n\ndata: x\n\n");
}

}  // namespace
}  // namespace millrace::serve
