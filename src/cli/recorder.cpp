#include "cli/recorder.h"

#include <charconv>
#include <nlohmann/json.hpp>

#include "base/json_text.h"
#include "lab/build_info.h"
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
                 "'{}' is not a run: give run:ID, with an ID that 'millrace runs' lists", text);
  return id;
}

Status Recorder::begin(const Recording& recording, const lab::Target& target,
                       const Machine& machine) {
  if (recording.no_store) return {};
  MILLRACE_ASSIGN(lab::Store store, open_store(recording.db, lab::Store::Missing::make));
  const lab::BuildInfo build = lab::build_info();
  MILLRACE_ASSIGN(id_, store.begin_run({.device = std::string(target.device()),
                                        .machine = fingerprint(machine),
                                        .machine_json = to_json(machine),
                                        .commit = build.commit,
                                        .build_json = lab::to_json(build),
                                        .command = recording.command}));
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

void Recorder::end(std::string_view state) {
  if (store_ && status_.ok()) status_ = store_->end_run(id_, state);
}

bool Recorder::report(bool say) const {
  if (!status_.ok())
    fmt::print(stderr, "millrace: the run was not stored completely: {}\n", status_.message());
  else if (id_ > 0 && say)
    fmt::print("stored as run {}\n", id_);
  return status_.ok();
}

}  // namespace millrace::cli
