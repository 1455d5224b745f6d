#include "lab/process_mark.h"

#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <fstream>
#include <sstream>

namespace millrace::lab {
namespace {

std::string first_line(const std::string& path) {
  std::string line;
  std::ifstream in(path);
  std::getline(in, line);
  return line;
}

// Field 22 of its stat, which comes after a name that may hold anything; empty when it is gone.
std::string start_of(const std::string& pid) {
  const std::string stat = first_line("/proc/" + pid + "/stat");
  const size_t name_end = stat.rfind(')');
  if (name_end == std::string::npos) return "";
  std::istringstream rest(stat.substr(name_end + 1));
  std::string word;
  for (int field = 3; field <= 22 && rest >> word; ++field) {
  }
  return word;
}

std::string boot() {
  return first_line("/proc/sys/kernel/random/boot_id");
}

std::string process_namespace() {
  std::array<char, 64> name{};
  const ssize_t n = readlink("/proc/self/ns/pid", name.data(), name.size());
  return n > 0 ? std::string(name.data(), static_cast<size_t>(n)) : "?";
}

}  // namespace

std::string process_mark() {
  const std::string pid = std::to_string(getpid());
  return fmt::format("{} {} {} {}", boot(), process_namespace(), pid, start_of(pid));
}

bool may_be_alive(std::string_view mark) {
  std::istringstream words{std::string(mark)};
  std::string its_boot, its_namespace, pid, start;
  if (!(words >> its_boot >> its_namespace >> pid >> start)) return false;
  if (its_boot != boot()) return false;
  if (its_namespace != process_namespace()) return true;
  if (pid.find_first_not_of("0123456789") != std::string::npos) return false;
  return start_of(pid) == start;
}

}  // namespace millrace::lab
