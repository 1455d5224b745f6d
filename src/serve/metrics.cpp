#include "serve/metrics.h"

#include <fmt/format.h>

#include <cmath>
#include <iterator>

namespace millrace::serve {
namespace {

class Writer {
 public:
  explicit Writer(std::string_view model) {
    for (const char c : model) {
      if (c == '"' || c == '\\') model_ += '\\';
      model_ += c == '\n' ? ' ' : c;
    }
  }

  void head(std::string_view name, std::string_view type, std::string_view help) {
    fmt::format_to(std::back_inserter(out), "# HELP {} {}\n# TYPE {} {}\n", name, help, name, type);
  }
  template <class T>
  void one(std::string_view name, std::string_view type, std::string_view help, T value) {
    head(name, type, help);
    fmt::format_to(std::back_inserter(out), "{} {}\n", name, value);
  }
  template <class T>
  void labelled(std::string_view name, std::string_view label, std::string_view value, T n) {
    fmt::format_to(std::back_inserter(out), "{}{{{}=\"{}\"}} {}\n", name, label, value, n);
  }
  template <class T>
  void vllm(std::string_view name, std::string_view type, T value) {
    fmt::format_to(std::back_inserter(out), "# TYPE vllm:{} {}\nvllm:{}{{model_name=\"{}\"}} {}\n",
                   name, type, name, model_, value);
  }

  std::string out;

 private:
  std::string model_;
};

void write_jobs(Writer& w, const JobMetrics& jobs) {
  constexpr std::string_view kStates[] = {"queued",    "paused",  "completed", "failed",
                                          "cancelled", "running", "stale"};
  w.one("millrace_jobs_up", "gauge", "1 where jobs are taken, 0 where their store does not work",
        jobs.works ? 1 : 0);
  w.head("millrace_jobs", "gauge", "Jobs in the store by state");
  for (size_t i = 0; i < jobs.by_state.size(); ++i)
    w.labelled("millrace_jobs", "state", kStates[i], jobs.by_state[i].load());
  w.one("millrace_jobs_bytes", "gauge", "What the jobs take of --jobs-size", jobs.n_bytes.load());
  w.one("millrace_job_tokens_committed_total", "counter", "Tokens of jobs that were committed",
        jobs.n_tokens.load());
  w.one("millrace_jobs_resumed_total", "counter", "Jobs that went on from tokens of an earlier run",
        jobs.n_resumed.load());
  jobs.commit.write(w.out, "millrace_job_commit_seconds",
                    "Time from a job's first unwritten token to the end of the commit");
}

}  // namespace

namespace {

void write_disk(Writer& w, const TierView& view) {
  const disk::Store::Counts& store = view.disk.store;
  w.one("millrace_kv_disk_bytes", "gauge", "Bytes of contexts on disk", store.bytes);
  w.one("millrace_kv_disk_records", "gauge", "Pages of contexts on disk", store.n_records);
  w.one("millrace_kv_disk_written_bytes_total", "counter", "Bytes written", store.bytes_written);
  w.one("millrace_kv_disk_read_bytes_total", "counter", "Bytes read", store.bytes_read);
  w.one("millrace_kv_disk_waiting", "gauge", "Pages that wait to be written", view.tree.n_unsaved);
  w.head("millrace_kv_disk_dropped_total", "counter", "Pages that are not on disk, by reason");
  const auto dropped = [&](const char* reason, auto n) {
    w.labelled("millrace_kv_disk_dropped_total", "reason", reason, n);
  };
  dropped("size", store.n_dropped);               // the oldest made room
  dropped("not_written", view.tree.n_not_saved);  // memory ran out before the disk took them
  dropped("write_failed", view.disk.n_lost);
  w.one("millrace_kv_disk_write_failures_total", "counter", "Writes that failed",
        view.disk.n_write_failures);
  w.head("millrace_kv_disk_verify_failures_total", "counter", "Records that were no good, by when");
  w.labelled("millrace_kv_disk_verify_failures_total", "when", "start", store.n_damaged);
  w.labelled("millrace_kv_disk_verify_failures_total", "when", "read", store.n_bad_reads);
  w.one("millrace_kv_disk_foreign_total", "counter", "Records of another root met at the start",
        store.n_foreign);
  w.one("millrace_kv_restores_total", "counter", "Prompts for which the disk was read",
        view.restores.n_restores);
  w.one("millrace_kv_restores_failed_total", "counter", "Of them those that got less than all",
        view.restores.n_failed);
  w.one("millrace_kv_restored_tokens_total", "counter", "Tokens read from disk into memory",
        view.restores.n_tokens);
  w.one("millrace_kv_restore_seconds_total", "counter", "Time that restores took",
        view.restores.seconds);
  w.one("millrace_kv_regret_tokens_total", "counter",
        "Tokens that memory gave up, that were wanted again, and that the disk lacked",
        view.restores.n_regret);
}

// The gaps fade: what was long ago counts less.
void write_retention(Writer& w, const Retention::Counts& counts) {
  constexpr std::string_view kName = "millrace_tool_gap_seconds";
  w.head("millrace_retention_total", "counter",
         "Contexts by what became of them: back and all there, back and given up before, followed "
         "by a newer state of their session, not back in time");
  const auto outcome = [&](const char* what, int64_t n) {
    w.labelled("millrace_retention_total", "outcome", what, n);
  };
  outcome("hit", counts.n_hits);
  outcome("evicted", counts.n_evicted);
  outcome("superseded", counts.n_superseded);
  outcome("expired", counts.n_expired);
  w.head(kName, "gauge", "Tool calls lately by how soon the client was back, up to le seconds");
  double n = 0;
  for (int i = 0; i < Gaps::kBuckets; ++i) {
    n += counts.tool_gaps.n_returned(i);
    if (i % 4 == 3) w.labelled(kName, "le", fmt::format("{:g}", Gaps::start_of(i + 1)), n);
  }
}

}  // namespace

std::string_view name_of(Divergence divergence) {
  constexpr std::string_view kNames[] = {"first", "extends", "answer", "prompt", "evicted"};
  return kNames[static_cast<size_t>(divergence)];
}

double TimeHistogram::bound_s(int bucket) {
  return std::ldexp(1e-4, bucket);
}

void TimeHistogram::add(double seconds) {
  int bucket = 0;
  while (bucket < kBuckets && seconds > bound_s(bucket)) ++bucket;
  counts_[static_cast<size_t>(bucket)].fetch_add(1, std::memory_order_relaxed);
  sum_ns_.fetch_add(static_cast<int64_t>(seconds * 1e9), std::memory_order_relaxed);
}

void TimeHistogram::write(std::string& out, std::string_view name, std::string_view help) const {
  const auto to = std::back_inserter(out);
  fmt::format_to(to, "# HELP {} {}\n# TYPE {} histogram\n", name, help, name);
  int64_t n = 0;
  for (int i = 0; i <= kBuckets; ++i) {
    n += counts_[static_cast<size_t>(i)].load(std::memory_order_relaxed);
    const std::string bound = i == kBuckets ? "+Inf" : fmt::format("{:g}", bound_s(i));
    fmt::format_to(to, "{}_bucket{{le=\"{}\"}} {}\n", name, bound, n);
  }
  fmt::format_to(to, "{}_sum {}\n{}_count {}\n", name,
                 static_cast<double>(sum_ns_.load(std::memory_order_relaxed)) * 1e-9, name, n);
}

std::string Metrics::text(const Now& now) const {
  Writer w(now.model);
  w.one("millrace_requests_running", "gauge", "Requests that are being computed", now.n_running);
  w.one("millrace_requests_waiting", "gauge", "Requests in the queue", now.n_waiting);
  w.one("millrace_requests_refused_total", "counter", "Requests answered with 503: too many wait",
        n_refused.load());
  w.head("millrace_requests_total", "counter", "Answers by how they ended");
  for (size_t i = 0; i < finished.size(); ++i)
    w.labelled("millrace_requests_total", "finish", millrace::name_of(static_cast<Finish>(i)),
               finished[i].load());
  w.head("millrace_prompt_tokens_total", "counter", "Tokens of prompts by where they came from");
  w.labelled("millrace_prompt_tokens_total", "source", "cached", now.counts.n_cached);
  w.labelled("millrace_prompt_tokens_total", "source", "computed", now.counts.n_computed);
  w.head("millrace_cached_tokens_total", "counter", "Cached tokens of prompts by where they were");
  w.labelled("millrace_cached_tokens_total", "tier", "memory",
             now.counts.n_cached - now.counts.n_from_disk);
  w.labelled("millrace_cached_tokens_total", "tier", "disk", now.counts.n_from_disk);
  w.one("millrace_generated_tokens_total", "counter", "Tokens drawn", now.counts.n_drawn);
  w.one("millrace_ahead_tokens_total", "counter",
        "Tokens of next turns that were computed before the client came back", n_ahead.load());
  w.head("millrace_prefix_total", "counter",
         "Prompts by how they relate to the last one of their session");
  for (size_t i = 0; i < diverged.size(); ++i)
    w.labelled("millrace_prefix_total", "relation", name_of(static_cast<Divergence>(i)),
               diverged[i].load());
  w.head("millrace_kv_pages", "gauge", "KV pages by state");
  w.labelled("millrace_kv_pages", "state", "free", now.n_free_pages);
  w.labelled("millrace_kv_pages", "state", "cached", now.n_cached_pages);
  w.labelled("millrace_kv_pages", "state", "in_use",
             now.n_pages - now.n_free_pages - now.n_cached_pages);
  w.one("millrace_tree_nodes_dropped_total", "counter", "Nodes of the prefix tree given up",
        now.n_dropped_nodes);
  w.one("millrace_kv_disk_up", "gauge", "1: contexts are written to disk; 0: not, or not now",
        now.disk && !now.disk->disk.is_off ? 1 : 0);
  if (now.disk) write_disk(w, *now.disk);
  write_retention(w, now.retention);
  w.one("millrace_moved_aside_total", "counter", "Requests moved aside for want of KV pages",
        now.counts.n_moved_aside);
  w.one("millrace_steps_total", "counter", "Steps of the engine", now.counts.n_steps);
  w.one("millrace_uptime_seconds", "gauge", "Time since the start", now.uptime_s);
  step.write(w.out, "millrace_step_seconds", "Time of a step");
  queue.write(w.out, "millrace_queue_seconds", "Time until a request began to be computed");
  first_token.write(w.out, "millrace_time_to_first_token_seconds",
                    "Time from a request's arrival to its first token");
  between_tokens.write(w.out, "millrace_inter_token_seconds", "Time between tokens of a request");
  request.write(w.out, "millrace_request_seconds", "Time from a request's arrival to its end");
  if (now.jobs != nullptr) write_jobs(w, *now.jobs);

  w.vllm("num_requests_running", "gauge", now.n_running);
  w.vllm("num_requests_waiting", "gauge", now.n_waiting);
  const double used = static_cast<double>(now.n_pages - now.n_free_pages - now.n_cached_pages);
  w.vllm("kv_cache_usage_perc", "gauge",
         used / static_cast<double>(std::max<int64_t>(now.n_pages, 1)));
  w.vllm("prompt_tokens_total", "counter", now.counts.n_prompt);
  w.vllm("generation_tokens_total", "counter", now.counts.n_drawn);
  w.vllm("prefix_cache_queries_total", "counter", now.counts.n_prompt);
  w.vllm("prefix_cache_hits_total", "counter", now.counts.n_cached);
  w.vllm("num_preemptions_total", "counter", now.counts.n_moved_aside);
  first_token.write(w.out, "vllm:time_to_first_token_seconds", "Alias");
  between_tokens.write(w.out, "vllm:inter_token_latency_seconds", "Alias");
  request.write(w.out, "vllm:e2e_request_latency_seconds", "Alias");
  queue.write(w.out, "vllm:request_queue_time_seconds", "Alias");
  return w.out;
}

}  // namespace millrace::serve
