#include "serve/jobs/followers.h"

#include <utility>

namespace millrace::serve {
namespace {

constexpr int64_t kTokensPerWrite = 512;  // about 100 kB of events
constexpr int kWritesPerTurn = 8;
constexpr size_t kMostUnread = size_t{1} << 20;
constexpr double kSlowPauseS = 0.02, kPauseS = 1, kNobodyS = 600;

}  // namespace

struct JobFollowers::Follower {
  int64_t n;
  std::unique_ptr<JobReplay> replay;
  JobEvents events;
  std::shared_ptr<Reply> reply;
  bool is_slow = false;
};

JobFollowers::JobFollowers(const JobStore& reader) : reader_(reader) {}

JobFollowers::~JobFollowers() = default;

void JobFollowers::add(int64_t n, std::unique_ptr<JobReplay> replay, int64_t after,
                       std::shared_ptr<Reply> reply) {
  JobEvents events(*replay, after);
  auto follower = std::make_unique<Follower>(
      Follower{n, std::move(replay), std::move(events), std::move(reply)});
  const Next next = pump(*follower);
  if (next == Next::over) return;
  follower->is_slow = next == Next::has_more;
  all_.push_back(std::move(follower));
}

JobFollowers::Next JobFollowers::write_some(Follower& follower) const {
  JobReplay& replay = *follower.replay;
  const auto now = reader_.progress(follower.n);
  if (!now.ok() || !now.value()) {  // it was deleted
    follower.reply->end();
    return Next::over;
  }
  const JobProgress& progress = *now.value();
  std::vector<AnswerEvent> events;
  if (!replay.has_started() && progress.n_cached >= 0) replay.start(progress, events);
  int64_t n_new = 0;
  if (replay.has_started()) {
    const auto tokens = reader_.tokens(follower.n, replay.n_taken(), kTokensPerWrite);
    if (!tokens.ok()) return Next::over;  // which breaks the connection off
    replay.take(tokens.value(), events);
    n_new = std::ssize(tokens.value());
  }
  const bool is_all = n_new < kTokensPerWrite;
  const bool is_over = is_all && has_ended(progress.state);
  if (is_over) replay.end(progress, events);
  if (std::string text = follower.events.write(events); !text.empty())
    follower.reply->write(std::move(text));
  if (is_over) follower.reply->end();
  return is_over ? Next::over : is_all ? Next::waits : Next::has_more;
}

JobFollowers::Next JobFollowers::pump(Follower& follower) const {
  for (int i = 0; i < kWritesPerTurn; ++i) {
    if (follower.reply->is_gone()) return Next::over;
    if (follower.reply->unread_bytes() > kMostUnread) return Next::has_more;
    if (const Next next = write_some(follower); next != Next::has_more) return next;
  }
  return Next::has_more;
}

void JobFollowers::pump(int64_t n) {
  std::erase_if(all_, [&](const std::unique_ptr<Follower>& follower) {
    if (follower->n != n || follower->is_slow) return false;
    const Next next = pump(*follower);
    follower->is_slow = next == Next::has_more;
    return next == Next::over;
  });
}

double JobFollowers::pump_slow() {
  bool is_any_slow = false;
  std::erase_if(all_, [&](const std::unique_ptr<Follower>& follower) {
    if (!follower->is_slow) return follower->reply->is_gone();
    const Next next = pump(*follower);
    follower->is_slow = next == Next::has_more;
    is_any_slow |= follower->is_slow;
    return next == Next::over;
  });
  return all_.empty() ? kNobodyS : is_any_slow ? kSlowPauseS : kPauseS;
}

void JobFollowers::end_all() {
  for (const auto& follower : all_) follower->reply->end();
  all_.clear();
}

}  // namespace millrace::serve
