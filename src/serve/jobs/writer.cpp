#include "serve/jobs/writer.h"

#include <chrono>
#include <utility>

#include "base/clock.h"

namespace millrace::serve {
namespace {

constexpr double kRetryS = 1;  // after a failure: the disk may be full for long

}  // namespace

JobWriter::JobWriter(JobStore store, JobMetrics& metrics,
                     std::function<void(const Status&)> on_change)
    : store_(std::move(store)),
      metrics_(metrics),
      on_change_(std::move(on_change)),
      thread_([this] { run(); }) {}

JobWriter::~JobWriter() {
  stop();
}

void JobWriter::stop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void JobWriter::push(Order order, bool is_urgent) {
  {
    const std::lock_guard lock(mutex_);
    order.since_ns = now_ns();
    open_.clear();  // what follows must not come before this
    orders_.push_back(std::move(order));
    is_urgent_ |= is_urgent;
  }
  changed_.notify_all();
}

void JobWriter::ask(Work work, Then then) {
  push({.work = std::move(work), .then = std::move(then)}, true);
}

void JobWriter::keep(Work work, Then then) {
  push({.work = std::move(work), .then = std::move(then), .is_kept = true}, true);
}

void JobWriter::token(int64_t job, int64_t at, int32_t token,
                      const std::shared_ptr<const Then>& then) {
  const std::lock_guard lock(mutex_);
  const auto [open, is_new] = open_.try_emplace(job, orders_.size());
  if (is_new)
    orders_.push_back({.is_kept = true,
                       .since_ns = now_ns(),
                       .job = job,
                       .at = at,
                       .tokens = {},
                       .then_tokens = then});
  orders_[open->second].tokens.push_back(token);
  if (orders_.size() == 1 && is_new) changed_.notify_all();
}

// Until there is something to write: false at the end.
bool JobWriter::wait(std::unique_lock<std::mutex>& lock) {
  using Seconds = std::chrono::duration<double>;
  if (has_failed_) changed_.wait_for(lock, Seconds(kRetryS), [&] { return stopping_; });
  changed_.wait(lock, [&] { return stopping_ || !orders_.empty(); });
  changed_.wait_for(lock, Seconds(kGatherS), [&] { return stopping_ || is_urgent_; });
  return !orders_.empty();
}

void JobWriter::run() noexcept {
  std::unique_lock lock(mutex_);
  std::vector<Order> batch;
  while (wait(lock)) {
    batch.swap(orders_);
    open_.clear();
    is_urgent_ = false;
    lock.unlock();
    const Status status = write(batch);
    settle(batch, status);
    lock.lock();
    if (!status.ok() && stopping_) return;  // nobody was told of it, so nothing is lost
    // What must be kept goes before what came meanwhile.
    orders_.insert(orders_.begin(), std::make_move_iterator(batch.begin()),
                   std::make_move_iterator(batch.end()));
    open_.clear();
    batch.clear();
  }
}

Status JobWriter::write(std::vector<Order>& batch) {
  MILLRACE_TRY(store_.begin());
  int64_t n_tokens = 0;
  const auto all = [&]() -> Status {
    for (Order& order : batch) {
      if (order.work) {
        MILLRACE_TRY(order.work(store_));
      } else {
        MILLRACE_ASSIGN(const int64_t n, store_.append(order.job, order.at, order.tokens));
        n_tokens += n;
      }
    }
    return store_.commit();
  };
  Status status = all();
  if (!status.ok()) {
    store_.roll_back();
    return status;
  }
  const int64_t now = now_ns();
  metrics_.n_tokens += n_tokens;
  metrics_.commit.add(static_cast<double>(now - batch.front().since_ns) * 1e-9);
  return status;
}

// Afterwards the batch holds what is to be tried again.
void JobWriter::settle(std::vector<Order>& batch, const Status& status) {
  std::vector<Order> again;
  const bool changes = has_failed_ == status.ok();
  has_failed_ = !status.ok();
  if (changes) on_change_(status);
  for (Order& order : batch) {
    if (!status.ok() && order.is_kept) {
      again.push_back(std::move(order));
      continue;
    }
    if (order.then) order.then(status);
    if (order.then_tokens) (*order.then_tokens)(status);
  }
  batch = std::move(again);
}

}  // namespace millrace::serve
