// The lab's page behind a real server: what it answers, whom, and what it survives. Named for TSan:
// its threads meet in all of them.
#include "lab/page/page.h"

#include <nlohmann/json.hpp>
#include <thread>

#include "lab/notebook/fixture_test.h"
#include "lab/page/documents.h"
#include "lab/page/site.h"
#include "lab/page/web_files.h"
#include "serve/http_server.h"
#include "serve/http_test_client.h"

namespace millrace::lab {
namespace {

using Json = nlohmann::json;

constexpr const char* kHostile = "<script>alert(1)</script>\"'&\x1b[31m\xe2\x80\xae</title>";

class LabPageThreads : public NotebookFixture {
 protected:
  std::unique_ptr<LabPage> page;
  std::unique_ptr<serve::HttpServer> server;

  void start(const std::string& keys = "") {
    page = std::make_unique<LabPage>(PageOptions{file, MILLRACE_FAKE_NVML});
    serve::HttpServerOptions options;
    options.port = 0;
    if (!keys.empty()) options.keys = serve::Keys::from_text(keys, "test").value();
    auto started = serve::HttpServer::start(std::move(options), page->routes());
    ASSERT_TRUE(started.ok()) << started.status().message();
    server = std::move(started).value();
  }
  void TearDown() override {
    if (page) page->stop();
    server.reset();
    page.reset();
    NotebookFixture::TearDown();
  }

  serve::TestReply ask(const std::string& path, const std::string& headers = "") {
    serve::TestClient client(server->port());
    return client.ask(fmt::format("GET {} HTTP/1.1\r\nHost: 127.0.0.1:{}\r\n{}\r\n", path,
                                  server->port(), headers));
  }
  Json get(const std::string& path, int status = 200) {
    const serve::TestReply reply = ask("/lab/api/" + path);
    EXPECT_EQ(reply.status, status) << path << ": " << reply.body;
    Json out = Json::parse(reply.body, nullptr, false);
    EXPECT_FALSE(out.is_discarded()) << path << ": " << reply.body;
    return out;
  }

  // A hypothesis with all that can follow from it, its texts hostile.
  void fill() {
    Notebook notebook = open();
    Hypothesis h = hypothesis("-10%");
    h.text = kHostile;
    h.rationale = kHostile;
    const int64_t id = notebook.add(h).value();
    add_run(notebook, {metric("avx2", 10), metric("avx512", 8)}, id);
    ASSERT_TRUE(notebook.give_verdict(id).ok());
    ASSERT_TRUE(notebook.learn(id, kHostile, kHostile).ok());
    Post post;
    post.slug = "a-post";
    post.title = kHostile;
    post.body = kHostile;
    ASSERT_TRUE(notebook.add(post).ok());
    add_run(notebook, {metric("avx2", 11)});
  }
};

TEST_F(LabPageThreads, AnswersEveryDocument) {
  fill();
  start();
  EXPECT_EQ(get("overview")["counts"]["runs"], 2);
  EXPECT_EQ(get("overview")["hypotheses"]["supported"], 1);
  const Json runs = get("runs");
  EXPECT_EQ(runs["items"].size(), 2u);
  EXPECT_EQ(runs["items"][0]["id"], "run:2");
  EXPECT_TRUE(runs["next"].is_null());
  const Json run = get("run/1");
  EXPECT_EQ(run["results"].size(), 2u);
  EXPECT_EQ(run["hypothesis"], "hyp:1");
  EXPECT_EQ(run["problem"], "");
  EXPECT_EQ(run["results"][0]["variant"], "avx2");
  EXPECT_EQ(run["results"][0]["kernel"]["bound"], "bytes");
  const Json samples = get("samples/1");
  EXPECT_EQ(samples["items"].size(), 2u);
  EXPECT_EQ(samples["items"][0]["samples"].size(), 20u);
  EXPECT_EQ(samples["items"][0]["twin"].size(), 20u);
  EXPECT_EQ(get("names")["items"][0], (Json{{"kind", "op"}, {"name", "rmsnorm"}, {"runs", 2}}));
  EXPECT_EQ(get("subjects?name=rmsnorm")["items"].size(), 2u);
  EXPECT_EQ(get("hypotheses?status=supported")["items"].size(), 1u);
  EXPECT_EQ(get("hypotheses?status=refuted")["items"].size(), 0u);
  EXPECT_EQ(get("experiments")["items"][0]["outcome"], "supported");
  const Json hypothesis = get("hypothesis/1");
  EXPECT_EQ(hypothesis["verdicts"][0]["rows"].size(), 1u);
  EXPECT_EQ(hypothesis["learnings"].size(), 1u);
  EXPECT_EQ(get("learnings")["items"].size(), 1u);
  EXPECT_GE(get("graph")["edges"].size(), 3u);
  EXPECT_GE(get("graph?around=hyp:1")["nodes"].size(), 3u);
  EXPECT_GE(get("events")["items"].size(), 6u);
  EXPECT_FALSE(get("posts")["items"][0].contains("body"));
  EXPECT_EQ(get("post/1")["state"], "draft");
}

TEST_F(LabPageThreads, HostileTextIsOnlyEverText) {
  fill();
  start();
  const Json h = get("hypothesis/1");
  EXPECT_EQ(h["text"], kHostile);  // as it was written: the page makes text nodes of it
  EXPECT_EQ(get("post/1")["body"], kHostile);
  const serve::TestReply reply = ask("/lab/api/hypothesis/1");
  EXPECT_TRUE(reply.has("Content-Type: application/json"));
  EXPECT_EQ(reply.body.find('\x1b'), std::string::npos);  // JSON escapes it
}

TEST_F(LabPageThreads, ResultsAreFilteredAndPaged) {
  {
    Notebook notebook = open();
    for (int i = 0; i < 7; ++i)
      add_run(notebook, {metric("avx2", 10 + i), metric("avx512", 8), metric("avx2", 4, "8x576")});
  }
  start();
  std::vector<int64_t> seen;
  for (std::string next = "0"; !next.empty();) {
    const Json page = get("results?limit=4&before=" + next);
    for (const Json& item : page["items"]) seen.push_back(item["id"].get<int64_t>());
    next = page["next"].is_null() ? "" : page["next"].dump();
  }
  EXPECT_EQ(seen.size(), 21u);
  EXPECT_TRUE(std::is_sorted(seen.rbegin(), seen.rend()));
  EXPECT_EQ(get("results?name=rmsnorm&limit=100")["items"].size(), 21u);
  EXPECT_EQ(get("results?name=other")["items"].size(), 0u);
  EXPECT_EQ(get("results?variant=avx5*")["items"].size(), 7u);
  EXPECT_EQ(get("results?problem=8x*&mode=cold")["items"].size(), 7u);
  EXPECT_EQ(get("results?problem=8x*&mode=warm")["items"].size(), 0u);
  EXPECT_EQ(get("results?metric=tokens_per_s")["items"].size(), 0u);
  const int64_t subject = get("results?variant=avx512")["items"][0]["subject"].get<int64_t>();
  const Json history = get(fmt::format("results?subject={}&metric=time", subject));
  EXPECT_EQ(history["items"].size(), 7u);
  EXPECT_EQ(history["items"][0]["run"], 7);
}

TEST_F(LabPageThreads, WrongQuestionsAreClearErrors) {
  fill();
  start();
  for (const char* path :
       {"run/0", "run/x", "run/-1", "run/99999999999999999999", "runs?limit=0", "runs?limit=x",
        "runs?limit=5000", "runs?before=-1", "runs?limit=1&limit=2", "runs?a=%zz", "runs?a=%00",
        "results?problem=*****a", "graph?around=x", "graph?around=nothing:1"})
    EXPECT_NE(get(path, 400)["error"]["message"], "") << path;
  for (const char* path : {"run/99", "hypothesis/99", "post/99", "nothing", "run", "samples/99",
                           "graph?around=hyp:99", "results?before=999"})
    EXPECT_NE(get(path, 404)["error"]["message"], "") << path;
  EXPECT_EQ(get("runs?name=%3Cscript%3E")["items"].size(), 0u);
  EXPECT_EQ(get("results?name=%27%3B+DROP+TABLE+runs")["items"].size(), 0u);
  EXPECT_EQ(get("overview")["counts"]["runs"], 2);
}

TEST_F(LabPageThreads, AServerOutlivesItsDatabase) {
  start();
  EXPECT_NE(get("overview", 404)["error"]["message"].get<std::string>().find("no runs are stored"),
            std::string::npos);
  fill();  // it appears
  EXPECT_EQ(get("overview")["counts"]["runs"], 2);
  for (const char* suffix : {"", "-wal", "-shm"}) std::filesystem::remove(file.string() + suffix);
  EXPECT_EQ(get("overview", 404)["error"]["type"], name_of(Code::not_found));
  std::ofstream(file) << "this is no database at all, and long enough to be looked at as one......"
                      << std::string(4096, 'x');
  EXPECT_NE(get("overview", 503)["error"]["message"].get<std::string>().find("damaged"),
            std::string::npos);
  std::filesystem::remove(file);
  ASSERT_EQ(sql("CREATE TABLE other(x); INSERT INTO other VALUES(1)"), "");
  EXPECT_NE(get("runs", 503)["error"]["message"].get<std::string>().find("another program"),
            std::string::npos);
  EXPECT_EQ(ask("/lab/").status, 200);
  EXPECT_EQ(get("machine")["host"].contains("use"), true);  // needs none
}

TEST_F(LabPageThreads, ADamagedPageOfTheFileIsAnErrorAndNoMore) {
  fill();
  {
    Notebook notebook = open();
    ASSERT_TRUE(execute(notebook.store().connection(), "", "PRAGMA wal_checkpoint(TRUNCATE)").ok());
  }
  {
    std::fstream bytes(file, std::ios::in | std::ios::out | std::ios::binary);
    bytes.seekp(4096);
    bytes << std::string(1 << 20, '\x55');
  }
  start();
  for (const char* path :
       {"overview", "runs", "run/1", "results", "hypotheses", "graph", "events"}) {
    const serve::TestReply reply = ask(std::string("/lab/api/") + path);
    EXPECT_TRUE(reply.status == 503 || reply.status == 200 || reply.status == 404) << path;
    EXPECT_FALSE(Json::parse(reply.body, nullptr, false).is_discarded()) << path;
  }
  EXPECT_EQ(ask("/lab/").status, 200);
}

TEST_F(LabPageThreads, DataNeedsTheAdminKeyAndFilesDoNot) {
  fill();
  start("admin ops:0123456789abcdef,alice:fedcba9876543210");
  EXPECT_EQ(ask("/lab/").status, 200);
  EXPECT_EQ(ask("/lab/lab.js").status, 200);
  EXPECT_EQ(ask("/lab/api/overview").status, 401);
  EXPECT_EQ(ask("/lab/api/live").status, 401);
  EXPECT_EQ(ask("/lab/api/overview", "Authorization: Bearer fedcba9876543210\r\n").status, 403);
  EXPECT_EQ(ask("/lab/api/overview", "Authorization: Bearer 0123456789abcdef\r\n").status, 200);
  EXPECT_EQ(ask("/lab/api/overview", "Origin: http://evil.example\r\n").status, 403);
  serve::TestClient client(server->port());
  EXPECT_EQ(client.ask("GET /lab/api/overview HTTP/1.1\r\nHost: evil.example\r\n\r\n").status, 421);
}

TEST_F(LabPageThreads, FilesComeWithAStrictPolicy) {
  start();
  EXPECT_EQ(ask("/lab").status, 308);
  EXPECT_TRUE(ask("/lab").has("Location: lab/"));
  for (const serve::WebFile& one : web_files()) {
    const serve::TestReply reply = ask("/lab" + std::string(one.path));
    EXPECT_EQ(reply.status, 200) << one.path;
    EXPECT_EQ(reply.body, one.bytes) << one.path;
    EXPECT_TRUE(reply.has("Content-Security-Policy: default-src 'self'; frame-ancestors 'none'"));
    EXPECT_TRUE(reply.has("nosniff"));
    EXPECT_EQ(one.bytes.find("innerHTML"), std::string::npos) << one.path;
  }
  EXPECT_EQ(ask("/lab/nothing.js").status, 404);
  EXPECT_EQ(ask("/lab/../etc/passwd").status, 400);
}

TEST_F(LabPageThreads, NewsComeAsTheyHappen) {
  fill();
  const std::filesystem::path gpus = folder / "gpus";
  std::ofstream(gpus) << "count 1\n0.use 90\n0.reasons 8\n";
  setenv("FAKE_NVML", gpus.c_str(), 1);
  start();
  serve::TestClient client(server->port());
  ASSERT_TRUE(client.send(
      fmt::format("GET /lab/api/live HTTP/1.1\r\nHost: 127.0.0.1:{}\r\n\r\n", server->port())));
  EXPECT_NE(client.read_through("\r\n\r\n").find("text/event-stream"), std::string::npos);
  const std::string first = client.read_chunk();
  ASSERT_TRUE(first.starts_with("data: {")) << first;
  const Json state = Json::parse(first.substr(6, first.find('\n') - 6));
  EXPECT_EQ(state["type"], "machine");
  EXPECT_EQ(state["gpus"][0]["use_percent"], 90);
  EXPECT_EQ(state["alerts"][0]["rule"], "throttle");
  {
    Notebook notebook = open();
    ASSERT_TRUE(notebook.add(hypothesis("-5%")).ok());
  }
  EXPECT_NE(client.read_through("hypothesis.added"), "");
  // Who stops does not wait for those who look.
  page->stop();
  EXPECT_NE(client.read_through("\r\n0\r\n\r\n"), "");
}

TEST_F(LabPageThreads, NobodyLooksAndNothingIsRead) {
  fill();
  start();
  {
    serve::TestClient client(server->port());
    ASSERT_TRUE(client.send(
        fmt::format("GET /lab/api/live HTTP/1.1\r\nHost: 127.0.0.1:{}\r\n\r\n", server->port())));
    EXPECT_NE(client.read_through("data: "), "");
  }
  // Another client finds room: those that left are forgotten.
  for (int i = 0; i < 80; ++i) {
    serve::TestClient client(server->port());
    ASSERT_TRUE(client.send(
        fmt::format("GET /lab/api/live HTTP/1.1\r\nHost: 127.0.0.1:{}\r\n\r\n", server->port())));
    EXPECT_NE(client.read_through("HTTP/1.1 200"), "") << i;
  }
}

TEST_F(LabPageThreads, ASiteIsThePageAndItsData) {
  fill();
  Notebook notebook = open();
  RunHead typed = head();
  typed.command = "millrace bench rmsnorm --db /home/alice/lab.db";
  const int64_t run = notebook.store().begin_run(typed).value();
  ASSERT_TRUE(notebook.store().end_run(run, "done").ok());
  const std::filesystem::path site = folder / "site";
  auto counts = write_site(notebook, machine, {.folder = site});
  ASSERT_TRUE(counts.ok()) << counts.status().message();
  EXPECT_EQ(counts->n_runs, 3);
  for (const char* name : {"index.html", "lab.js", "lab.css", "dom.js", "data/overview.json",
                           "data/run-1.json", "data/samples-1.json", "data/hypothesis-1.json",
                           "data/post-1.json", "data/graph.json", "data/events.json"})
    EXPECT_TRUE(std::filesystem::exists(site / name)) << name;
  std::stringstream html, overview;
  html << std::ifstream(site / "index.html").rdbuf();
  EXPECT_NE(html.str().find("data-static=\"20"), std::string::npos);
  overview << std::ifstream(site / "data" / "overview.json").rdbuf();
  EXPECT_EQ(overview.str().find(folder.string()), std::string::npos);  // no path of this machine
  for (const char* name : {"run-3", "runs", "events"}) {
    std::stringstream text;
    text << std::ifstream(site / "data" / (std::string(name) + ".json")).rdbuf();
    EXPECT_NE(text.str().find("bench rmsnorm --db [removed]"), std::string::npos) << name;
    EXPECT_EQ(text.str().find("alice"), std::string::npos) << name;
  }
  EXPECT_TRUE(write_site(notebook, machine, {.folder = site, .most_runs = 1}).ok());  // over it
  EXPECT_EQ(write_site(notebook, machine, {.folder = folder}).status().code(),
            Code::invalid_argument);  // which has other files
}

}  // namespace
}  // namespace millrace::lab
