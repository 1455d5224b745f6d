#include "lab/page/live.h"

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>

#include "base/json_text.h"
#include "lab/notebook/json.h"
#include "lab/page/machine_view.h"
#include "lab/page/reader.h"

namespace millrace::lab {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kMostWatching = 64;
constexpr int kMostEvents = 200;  // in one second; the rest comes in the next
constexpr auto kInterval = std::chrono::seconds(1);

std::string event_text(std::string_view type, Json body) {
  body["type"] = type;
  return "data: " + json_text(body) + "\n\n";
}

// New events of the log since the last call. The first one after a pause tells only where it is.
class LogTail {
 public:
  explicit LogTail(std::filesystem::path path) : reader_(std::move(path)) {}

  std::string next() {
    auto notebook = reader_.open();
    if (!notebook.ok()) return failure(notebook.status());
    auto events = seq_ < 0 ? (*notebook)->newest_events(1) : (*notebook)->events(seq_, kMostEvents);
    if (!events.ok()) return failure(events.status());
    problem_.clear();
    const bool is_first = seq_ < 0;
    if (is_first) seq_ = 0;
    Json items = Json::array();
    for (const Event& event : *events) {
      seq_ = event.seq;
      if (!is_first) items.push_back(to_json(event));
    }
    if (items.empty()) return "";
    return event_text("log", {{"items", std::move(items)}});
  }
  void forget() { seq_ = -1; }

 private:
  // Once: a database that is missing stays so for long.
  std::string failure(const Status& status) {
    reader_.close();
    seq_ = seq_ < 0 ? 0 : seq_;  // what comes then is new
    if (problem_ == status.message()) return "";
    problem_ = status.message();
    return event_text("problem", {{"message", problem_}});
  }

  Reader reader_;
  std::string problem_;
  int64_t seq_ = -1;
};

}  // namespace

Live::Live(std::filesystem::path database, std::string nvml)
    : database_(std::move(database)), nvml_(std::move(nvml)) {
  thread_ = std::thread([this]() noexcept { work(); });
}

Live::~Live() {
  stop();
  thread_.join();
}

bool Live::watch(const std::shared_ptr<serve::Reply>& reply) {
  {
    const std::lock_guard lock(mutex_);
    if (stopping_ || watching_.size() >= kMostWatching) return false;
    reply->begin_events({{"Cache-Control", "no-store"}, {"X-Accel-Buffering", "no"}});
    watching_.push_back(reply);
    ++n_came_;
  }
  changed_.notify_all();
  // The reply must not hold itself: it would never end.
  reply->on_gone([this, one = std::weak_ptr(reply)] {
    const std::lock_guard lock(mutex_);
    std::erase(watching_, one.lock());
  });
  return true;
}

int Live::n_watching() {
  const std::lock_guard lock(mutex_);
  return static_cast<int>(watching_.size());
}

void Live::stop() {
  std::vector<std::shared_ptr<serve::Reply>> all;
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    all.swap(watching_);
  }
  changed_.notify_all();
  for (const auto& reply : all) reply->end();
}

void Live::send(const std::string& text) {
  std::vector<std::shared_ptr<serve::Reply>> all;
  {
    const std::lock_guard lock(mutex_);
    std::erase_if(watching_, [](const auto& reply) { return reply->is_gone(); });
    all = watching_;
  }
  for (const auto& reply : all) reply->write(text);
}

void Live::work() noexcept {
  MachineView machine(database_.string(), nvml_);
  LogTail log(database_);
  for (;;) {
    uint64_t n_came = 0;
    {
      std::unique_lock lock(mutex_);
      if (watching_.empty()) log.forget();
      changed_.wait(lock, [&] { return stopping_ || !watching_.empty(); });
      if (stopping_) return;
      n_came = n_came_;
    }
    send(event_text("machine", machine.now()) + log.next());
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, kInterval, [&] { return stopping_ || n_came_ != n_came; });
  }
}

}  // namespace millrace::lab
