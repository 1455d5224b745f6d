#include "cli/recorder.h"

#include <charconv>
#include <nlohmann/json.hpp>

#include "base/json_text.h"
#include "lab/build_info.h"
#include "lab/notebook/notebook.h"
#include "lab/report.h"
#include "machine/json.h"

namespace millrace::cli {

Result<lab::Store> open_store(const std::string& path, lab::Store::Missing missing) {
  if (!path.empty()) return lab::Store::open(path, missing);
  MILLRACE_ASSIGN(const auto own, lab::Store::default_path());
  return lab::Store::open(own, missing);
}

Result<int64_t> parse_run(std::string_view text) {
  std::string_view digits = text;
  if (digits.starts_with("run:")) digits.remove_prefix(4);
  int64_t id = 0;
  const auto [end, failure] = std::from_chars(digits.data(), digits.data() + digits.size(), id);
  if (failure != std::errc() || end != digits.data() + digits.size() || id < 1)
    return error(Code::invalid_argument,
                 "'{}' is not a run: give run:ID, with an ID that 'millrace lab show runs' lists",
                 text);
  return id;
}

namespace {

// The hypothesis was written before; from here on its run can be measured.
Result<std::optional<int64_t>> begin_experiment(const Recording& recording) {
  if (recording.hypothesis == 0) return std::optional<int64_t>();
  MILLRACE_ASSIGN(lab::Store store, open_store(recording.db, lab::Store::Missing::refuse));
  lab::Experiment experiment;
  experiment.hypothesis = recording.hypothesis;
  experiment.role = recording.role;
  experiment.command = recording.command;
  MILLRACE_ASSIGN(const int64_t id, lab::Notebook(std::move(store)).add(experiment));
  return std::optional(id);
}

}  // namespace

Status Recorder::begin(const Recording& recording, std::string_view kind, std::string_view device,
                       const Machine& machine) {
  if (recording.no_store) return {};
  MILLRACE_ASSIGN(const auto experiment, begin_experiment(recording));
  MILLRACE_ASSIGN(lab::Store store, open_store(recording.db, lab::Store::Missing::make));
  const lab::BuildInfo build = lab::build_info();
  MILLRACE_ASSIGN(id_, store.begin_run({.device = std::string(device),
                                        .machine = fingerprint(machine),
                                        .machine_json = to_json(machine),
                                        .commit = build.commit,
                                        .build_json = lab::to_json(build),
                                        .command = recording.command,
                                        .kind = std::string(kind),
                                        .experiment = experiment}));
  store_.emplace(std::move(store));
  return {};
}

void Recorder::add_ceilings(std::string_view when, const lab::Roof& roof) {
  if (store_ && status_.ok())
    status_ = store_->add_ceilings(id_, when, json_text(lab::to_json(roof)));
}

void Recorder::add_rows(const std::vector<lab::Row>& rows) {
  if (store_ && status_.ok()) status_ = store_->add_rows(id_, rows);
}

void Recorder::add_metrics(const std::vector<lab::Metric>& metrics) {
  if (store_ && status_.ok()) status_ = store_->add_metrics(id_, metrics);
}

void Recorder::end(std::string_view state) {
  if (store_ && status_.ok()) status_ = store_->end_run(id_, state);
}

bool Recorder::report(bool say) const {
  if (!status_.ok())
    fmt::print(stderr, "millrace: the run was not stored completely: {}\n", status_.message());
  else if (id_ > 0 && say)
    fmt::print("stored as run:{}\n", id_);
  return status_.ok();
}

}  // namespace millrace::cli
