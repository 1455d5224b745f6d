#include "cli/profile_file.h"

#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>

#include "cli/state_file.h"

namespace millrace::cli {
namespace {

constexpr char kFile[] = "profile.json";
constexpr char kWithout[] = "set MILLRACE_PROFILE=off to run without a profile";

// GPUs are not looked for where a model runs on the CPU, and say nothing about it.
std::string_view without_gpus(std::string_view fingerprint) {
  return fingerprint.substr(0, fingerprint.find("; gpu "));
}

bool is_of(const Profile& profile, const Machine& machine) {
  const std::string here = fingerprint(machine);
  return machine.gpus.empty() ? without_gpus(profile.machine) == without_gpus(here)
                              : profile.machine == here;
}

Result<Profile> read(const std::string& path, const Machine& machine) {
  auto profile = Profile::read(path);
  if (!profile.ok())
    return error(profile.status().code(),
                 "{}; delete the file and measure again with 'millrace "
                 "bench --write-profile default', or {}",
                 profile.status().message(), kWithout);
  if (is_of(profile.value(), machine)) return profile;
  fmt::print(stderr,
             "millrace: warning: ignoring the profile {}: it was measured on another machine ({}; "
             "this one is {}); 'millrace bench --write-profile default' measures this one\n",
             path, profile.value().machine, fingerprint(machine));
  return Profile();
}

}  // namespace

Result<Profile> load_profile(const Machine& machine) {
  const char* asked = std::getenv("MILLRACE_PROFILE");
  const bool is_set = asked != nullptr && *asked != '\0';
  if (is_set && std::string_view(asked) == "off") return Profile();
  const std::string path = is_set ? asked : state_path(kFile);
  std::error_code failed;
  if (!is_set && (path.empty() || !std::filesystem::exists(path, failed))) return Profile();
  if (is_set && !std::filesystem::exists(path, failed))
    return error(Code::not_found, "MILLRACE_PROFILE: no file {}; {}", path, kWithout);
  return read(path, machine);
}

Result<std::string> profile_to_write(const std::string& asked) {
  if (asked != "default") return asked;
  const std::string path = state_file(kFile);
  if (path.empty())
    return error(Code::not_found,
                 "neither XDG_STATE_HOME nor HOME says where to keep the profile; give "
                 "--write-profile a file");
  return path;
}

}  // namespace millrace::cli
