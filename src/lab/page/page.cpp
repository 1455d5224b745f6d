#include "lab/page/page.h"

#include <nlohmann/json.hpp>
#include <sstream>

#include "base/json_text.h"
#include "base/utf8.h"
#include "lab/page/documents.h"
#include "lab/page/live.h"
#include "lab/page/machine_view.h"
#include "lab/page/reader.h"
#include "lab/page/web_files.h"
#include "machine/json.h"
#include "serve/api_error.h"
#include "serve/http_error.h"
#include "serve/work_queue.h"

namespace millrace::lab {
namespace {

using Json = nlohmann::ordered_json;
using serve::HttpRequest;
using serve::Reply;

constexpr size_t kMostWaiting = 256;
constexpr std::string_view kApi = "/lab/api/";

// A file that is damaged, foreign or busy is the lab's trouble, not the client's request.
int status_for(Code code) {
  switch (code) {
    case Code::invalid_argument:
      return 400;
    case Code::not_found:
      return 404;
    default:
      return 503;
  }
}

void send_error(Reply& reply, int status, std::string_view message, std::string_view kind) {
  const Json body = {
      {"error", {{"message", message}, {"type", kind}, {"param", nullptr}, {"code", nullptr}}}};
  reply.send(status, {{"Cache-Control", "no-store"}}, json_text(body));
}

void send_json(Reply& reply, const Json& body) {
  reply.send(200, {{"Cache-Control", "no-store"}}, json_text(body));
}

}  // namespace

class LabPage::Impl {
 public:
  explicit Impl(PageOptions options)
      : options_(std::move(options)),
        live_(options_.database, options_.nvml),
        reader_(options_.database),
        view_(options_.database.string(), options_.nvml) {}

  void stop() { live_.stop(); }

  std::vector<serve::Route> routes() {
    std::vector<serve::Route> out;
    add_files(out);
    out.push_back(
        {"GET", "/lab", serve::Access::open, [](HttpRequest, const std::shared_ptr<Reply>& reply) {
           reply->send(308, {{"Location", "lab/"}}, "");
         }});
    out.push_back({"GET", std::string(kApi) + "live", serve::Access::admin,
                   [this](HttpRequest, const std::shared_ptr<Reply>& reply) {
                     if (!live_.watch(reply))
                       send_error(*reply, 503, "too many pages look at the lab already; close some",
                                  "overloaded");
                   }});
    out.push_back({"GET", std::string(kApi) + "*", serve::Access::admin,
                   [this](HttpRequest request, const std::shared_ptr<Reply>& reply) {
                     later(std::move(request), reply);
                   }});
    return out;
  }

 private:
  static void add_files(std::vector<serve::Route>& out) {
    for (const serve::WebFile& file : web_files()) {
      const auto send = [&file](HttpRequest, const std::shared_ptr<Reply>& reply) {
        reply->send(200,
                    {{"Content-Type", std::string(file.type)},
                     {"Content-Security-Policy", "default-src 'self'; frame-ancestors 'none'"},
                     {"Referrer-Policy", "no-referrer"},
                     {"X-Content-Type-Options", "nosniff"},
                     {"Cache-Control", "no-cache"}},
                    std::string(file.bytes));
      };
      out.push_back({"GET", "/lab" + std::string(file.path), serve::Access::open, send});
      if (file.path == "/index.html") out.push_back({"GET", "/lab/", serve::Access::open, send});
    }
  }

  void later(HttpRequest request, const std::shared_ptr<Reply>& reply) {
    const auto shared = std::make_shared<HttpRequest>(std::move(request));
    const bool taken = queue_.push([this, shared, reply] {
      if (!reply->is_gone()) answer(*shared, *reply);
    });
    if (!taken)
      send_error(*reply, 503, "too many questions wait already; try again in a moment",
                 "overloaded");
  }

  // On the queue's one thread.
  void answer(const HttpRequest& request, Reply& reply) {
    const std::string_view path = std::string_view(request.path).substr(kApi.size());
    auto document = path == "machine" ? machine_document() : read(path, request.query);
    if (document.ok()) return send_json(reply, *document);
    const Status status = document.status();
    send_error(reply, status_for(status.code()), status.message(), name_of(status.code()));
  }

  Result<Json> read(std::string_view path, const std::string& query) {
    MILLRACE_ASSIGN(const Params params, Params::parse(query));
    MILLRACE_ASSIGN(Notebook * notebook, reader_.open());
    auto out = read_document(*notebook, machine(), path, params);
    const Code code = out.status().code();
    if (!out.ok() && code != Code::not_found && code != Code::invalid_argument) reader_.close();
    return out;
  }

  // What this machine is, what it does, and the newest ceilings that a run on it measured.
  Result<Json> machine_document() {
    Json out = view_.now();
    out["machine"] = Json::parse(to_json(machine()), nullptr, false);
    out["ceilings"] = Json();
    auto notebook = reader_.open();
    if (!notebook.ok()) return out;
    const auto runs = (*notebook)->store().runs(50);
    if (!runs.ok()) return out;
    for (const RunSummary& run : runs.value()) {
      if (run.machine != fingerprint(machine())) continue;
      const auto record = (*notebook)->store().record(run.id);
      if (!record.ok() || record.value().ceilings.empty()) continue;
      const StoredCeilings& newest = record.value().ceilings.back();
      out["ceilings"] = {{"run", run.id},
                         {"at", newest.at},
                         {"measured", Json::parse(newest.json, nullptr, false)}};
      break;
    }
    return out;
  }

  // Found when first asked for: a driver takes a tenth of a second to start.
  const Machine& machine() {
    if (!machine_) machine_ = std::make_unique<Machine>(find_machine());
    return *machine_;
  }

  const PageOptions options_;
  Live live_;
  // Of the queue's thread:
  Reader reader_;
  MachineView view_;
  std::unique_ptr<Machine> machine_;
  serve::WorkQueue queue_{1, kMostWaiting};  // last: its thread ends before what it uses
};

LabPage::LabPage(PageOptions options) : impl_(std::make_unique<Impl>(std::move(options))) {}
LabPage::~LabPage() = default;
std::vector<serve::Route> LabPage::routes() {
  return impl_->routes();
}
std::vector<serve::MountedRoute> LabPage::described() {
  std::vector<serve::MountedRoute> out = {
      {std::string(kApi) + "machine", "lab_machine", "The machine's state, its GPUs and alerts"}};
  for (const Endpoint& endpoint : endpoints()) {
    const std::string_view name = endpoint.name.substr(0, endpoint.name.find('/'));
    serve::MountedRoute route{.path = std::string(kApi) + std::string(endpoint.name),
                              .id = "lab_" + std::string(name),
                              .summary = std::string(endpoint.what)};
    if (endpoint.name.ends_with('/')) route.path += "{id}";
    std::istringstream params{std::string(endpoint.params)};
    for (std::string param; params >> param;) route.params.push_back(param);
    out.push_back(std::move(route));
  }
  return out;
}
void LabPage::stop() {
  impl_->stop();
}

}  // namespace millrace::lab
