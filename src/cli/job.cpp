// millrace job: the jobs of a server that runs, as its client.
#include "cli/job.h"

#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <iostream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <thread>

#include "base/utf8.h"
#include "cli/commands.h"
#include "cli/interrupt.h"
#include "cli/sse_reader.h"
#include "cli/terminal_text.h"
#include "files/json.h"
#include "hub/http_call.h"

namespace millrace::cli {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kMaxBodyBytes = size_t{16} << 20, kMaxAnswerBytes = size_t{256} << 20;
constexpr int kTriesToFollow = 60;  // a second apart: the server may be starting again

struct Options {
  std::string url = "http://127.0.0.1:8080", api_key;
  bool json = false;
  std::string id;
  // submit
  std::string file, prompt, api, key;
  int64_t max_tokens = -1;
  bool follows = false;
  // list, follow
  int64_t limit = 20, after = -1;
};

HttpCall call_to(const Options& options, const char* method, const std::string& path) {
  std::string url = options.url;
  while (url.ends_with('/')) url.pop_back();
  HttpCall out{.method = method, .url = url + path};
  out.token = options.api_key;
  const std::atomic<bool>& interrupted = catch_interrupts();
  out.stopped = [&interrupted] { return interrupted.load(); };
  return out;
}

std::string message_of(const Json& body) {
  if (body.is_object() && body.contains("error") && body["error"].is_object() &&
      body["error"].contains("message") && body["error"]["message"].is_string())
    return body["error"]["message"].get<std::string>();
  return "the server gave no reason";
}

Status refused(int status, const Json& body) {
  const Code code = status == 404  ? Code::not_found
                    : status < 500 ? Code::invalid_argument
                                   : Code::unavailable;
  return error(code, "the server answered {}: {}", status, printable(message_of(body)));
}

Result<Json> fetch(const HttpCall& call) {
  auto answer = http_answer(call, kMaxAnswerBytes);
  if (answer.status().code() == Code::unavailable)
    return error(Code::unavailable,
                 "{}; is millrace serve running there? --url names another place",
                 answer.status().message());
  if (!answer.ok()) return answer.status();
  Json body = Json::parse(answer->body, nullptr, false);
  if (answer->status >= 300) return refused(answer->status, body);
  if (body.is_discarded())
    return error(Code::corrupt, "{}: the answer is no JSON; is it millrace serve?", call.url);
  return body;
}

std::string text_at(const Json& json, const char* name) {
  if (!json.is_object() || !json.contains(name) || json[name].is_null()) return "";
  return printable(json[name].is_string() ? json[name].get<std::string>() : json[name].dump());
}

void print_line(const Json& job) {
  fmt::print("{}  {:<9}  {:>6} of {} tokens  {}  {}\n", text_at(job, "id"), text_at(job, "status"),
             text_at(job, "tokens"), text_at(job, "max_tokens"), text_at(job, "model"),
             text_at(job, "api"));
  if (job.contains("stale_because") && job["stale_because"].is_array())
    for (const Json& why : job["stale_because"])
      if (why.is_string()) fmt::print("  {}\n", printable(why.get<std::string>()));
  if (job.contains("error") && job["error"].is_object())
    fmt::print("  {}\n", text_at(job["error"], "message"));
}

int print(const Options& options, const Result<Json>& job) {
  if (!job.ok()) return fail(job.status());
  if (options.json)
    print_json(job.value());
  else if (job.value().contains("deleted"))
    fmt::print("{} is deleted\n", text_at(job.value(), "id"));
  else
    print_line(job.value());
  return 0;
}

// The text of an event, whichever API it is of.
std::string text_of_event(const Json& event) {
  const auto text = [](const Json& in, const char* name) {
    return in.is_object() && in.contains(name) && in[name].is_string() ? in[name].get<std::string>()
                                                                       : std::string();
  };
  if (!event.is_object()) return "";
  if (event.contains("choices") && event["choices"].is_array() && !event["choices"].empty() &&
      event["choices"][0].is_object() && event["choices"][0].contains("delta"))
    return text(event["choices"][0]["delta"], "content");
  const std::string type = text(event, "type");
  if (type == "response.output_text.delta") return text(event, "delta");
  if (type == "content_block_delta" && event.contains("delta")) return text(event["delta"], "text");
  return "";
}

void print_event(const Options& options, const SseReader::Event& event) {
  if (options.json) {
    fmt::print("{}\n", event.data);
  } else {
    const Json json = Json::parse(event.data, nullptr, false);
    fmt::print("{}", without_controls(text_of_event(json)));
  }
  std::fflush(stdout);
}

// Until the job has ended: a broken connection is made again, and goes on after the last event.
Result<Json> follow(const Options& options, const std::string& id) {
  int64_t after = options.after;
  for (int n_failed = 0;;) {
    SseReader reader;
    std::string other;
    bool is_sane = true;
    HttpCall call = call_to(options, "GET", fmt::format("/v1/jobs/{}/events", id));
    if (after >= 0) call.headers.push_back(fmt::format("Last-Event-ID: {}", after));
    const auto status = http_call(call, [&](int code, std::string_view bytes) {
      if (code != 200) {
        other += bytes;
        return other.size() < kMaxBodyBytes;
      }
      is_sane = reader.take(bytes, [&](const SseReader::Event& event) {
        if (event.id >= 0) after = event.id;
        n_failed = 0;
        print_event(options, event);
      });
      return is_sane;
    });
    if (!is_sane) return error(Code::corrupt, "{}: an event does not end", call.url);
    if (!status.ok() && status.status().code() == Code::cancelled) return status.status();
    if (status.ok() && status.value() != 200 && status.value() < 500)
      return refused(status.value(), Json::parse(other, nullptr, false));
    auto job = fetch(call_to(options, "GET", "/v1/jobs/" + id));
    if (job.ok() && job->contains("ended_at") && !(*job)["ended_at"].is_null()) return job;
    if (!job.ok() && job.status().code() == Code::not_found) return job.status();
    const Status why = !job.ok()      ? job.status()
                       : !status.ok() ? status.status()
                                      : error(Code::unavailable, "{}: the events broke off", id);
    if (++n_failed > kTriesToFollow) return why;
    if (n_failed == 1)
      fmt::print(stderr, "millrace: {}; trying again for {} s\n", why.message(), kTriesToFollow);
    std::this_thread::sleep_for(std::chrono::seconds(1));
  }
}

int follow_command(const Options& options, const std::string& id) {
  const auto job = follow(options, id);
  if (!job.ok()) return fail(job.status());
  const std::string status = text_at(job.value(), "status");
  if (!options.json) fmt::print("\n");
  fmt::print(stderr, "millrace: {} {} after {} tokens\n", id, status,
             text_at(job.value(), "tokens"));
  return status == "completed" ? 0 : kFailed;
}

Result<std::string> body_of(const Options& options) {
  Json body;
  if (!options.prompt.empty()) {
    body = {{"messages", Json::array({{{"role", "user"}, {"content", options.prompt}}})}};
  } else {
    std::string text;
    if (options.file.empty() && isatty(STDIN_FILENO) != 0)
      return error(Code::invalid_argument,
                   "nothing to submit: give a question with --prompt, or a file with the body of a "
                   "request (- for standard input)");
    if (options.file.empty() || options.file == "-") {
      text.assign(std::istreambuf_iterator<char>(std::cin), {});
    } else {
      MILLRACE_ASSIGN(text, read_text_file(options.file, kMaxBodyBytes));
    }
    body = Json::parse(text, nullptr, false);
    if (!body.is_object())
      return error(Code::invalid_argument,
                   "{} is no JSON object; give the body of a request, or a question with --prompt",
                   options.file.empty() ? "standard input" : options.file);
  }
  if (options.max_tokens > 0)
    body[body.contains("input") ? "max_output_tokens" : "max_tokens"] = options.max_tokens;
  if (!options.api.empty()) body["api"] = options.api;
  return json_text(body);
}

int submit(const Options& options) {
  auto body = body_of(options);
  if (!body.ok()) return fail(body.status());
  HttpCall call = call_to(options, "POST", "/v1/jobs");
  call.body = std::move(body).value();
  call.headers = {"Content-Type: application/json"};
  if (!options.key.empty()) call.headers.push_back("Idempotency-Key: " + options.key);
  const auto job = fetch(call);
  if (!job.ok() || !options.follows) return print(options, job);
  const std::string id = text_at(job.value(), "id");
  fmt::print(stderr, "millrace: {}\n", id);
  return follow_command(options, id);
}

int list(const Options& options) {
  auto page = fetch(call_to(options, "GET", fmt::format("/v1/jobs?limit={}", options.limit)));
  if (!page.ok()) return fail(page.status());
  if (options.json) {
    print_json(page.value());
    return 0;
  }
  if (!page->contains("data") || !(*page)["data"].is_array() || (*page)["data"].empty()) {
    fmt::print("There are no jobs.\n");
    return 0;
  }
  for (const Json& job : (*page)["data"]) print_line(job);
  return 0;
}

void add_client_options(Command& command, Options& options) {
  command.option("--url", options.url, "Where the server is").type_name("URL").show_default();
  command
      .option("--api-key", options.api_key,
              "Key of the server, where it has keys (or set MILLRACE_JOB_API_KEY: other users see "
              "what is typed)")
      .type_name("KEY");
  command.flag("--json", options.json, "Print JSON");
}

using OptionsPtr = std::shared_ptr<Options>;

void add_action(Command& parent, const char* name, const char* help, const char* method,
                const std::string& suffix) {
  auto options = std::make_shared<Options>();
  Command command = parent.add(name, help);
  command.option("id", options->id, "The job").type_name("ID").required();
  add_client_options(command, *options);
  command.settings("MILLRACE_JOB");
  command.runs([options, method, suffix] {
    return print(*options, fetch(call_to(*options, method, "/v1/jobs/" + options->id + suffix)));
  });
}

void add_submit(Command& parent) {
  auto options = std::make_shared<Options>();
  Command command = parent.add("submit", "Submit a request as a job");
  command
      .option("file", options->file,
              "Body of a request: chat completions, Responses or Messages (default: stdin)")
      .type_name("FILE");
  command.option("-p,--prompt", options->prompt, "A question instead of a body").type_name("TEXT");
  command.option("-n,--max-tokens", options->max_tokens, "Tokens of the answer, at most")
      .at_least(1);
  command
      .option("--api", options->api,
              "API of the body, where its shape does not say: chat_completions, responses or "
              "messages")
      .one_of({"chat_completions", "responses", "messages"});
  command
      .option("--key", options->key,
              "Idempotency-Key: the same key and body is the same job, however often it is sent")
      .type_name("KEY");
  command.flag("-f,--follow", options->follows, "Print the answer as it comes");
  add_client_options(command, *options);
  command.settings("MILLRACE_JOB");
  command.runs([options] { return submit(*options); });
}

void add_list(Command& parent) {
  auto options = std::make_shared<Options>();
  Command command = parent.add("list", "List the jobs, the newest first");
  command.option("--limit", options->limit, "How many").range(1, 100).show_default();
  add_client_options(command, *options);
  command.settings("MILLRACE_JOB");
  command.runs([options] { return list(*options); });
}

void add_follow(Command& parent) {
  auto options = std::make_shared<Options>();
  Command command =
      parent.add("follow", "Print a job's answer as it comes, also across restarts of the server");
  command.option("id", options->id, "The job").type_name("ID").required();
  command.option("--after", options->after, "Start after the event of this number").at_least(0);
  add_client_options(command, *options);
  command.settings("MILLRACE_JOB");
  command.runs([options] { return follow_command(*options, options->id); });
}

}  // namespace

void add_job(App& app) {
  Command command =
      app.add("job", "Answers that a server makes in the background, also across restarts");
  add_submit(command);
  add_list(command);
  add_action(command, "show", "Show the state of a job; follow prints its answer", "GET", "");
  add_follow(command);
  add_action(command, "pause", "Let a job rest until it is resumed", "POST", "/pause");
  add_action(command, "resume", "Go on with a job that was paused", "POST", "/resume");
  add_action(command, "cancel", "End a job; its tokens are kept", "POST", "/cancel");
  add_action(command, "restart", "Make a new job that goes on from the tokens of a stale one",
             "POST", "/restart");
  add_action(command, "delete", "Delete a job", "DELETE", "");
}

}  // namespace millrace::cli
