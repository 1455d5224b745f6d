#include "hub/child.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <thread>

namespace millrace {
namespace {

constexpr int kNoProgram = 127;

std::vector<char*> pointers(std::vector<std::string>& words) {
  std::vector<char*> out;
  for (std::string& word : words) out.push_back(word.data());
  out.push_back(nullptr);
  return out;
}

// This process's environment with `more` in it.
std::vector<std::string> joined_environment(const std::vector<std::string>& more) {
  std::vector<std::string> out = more;
  for (char** at = environ; *at != nullptr; ++at) {
    const std::string_view entry = *at;
    const std::string_view name = entry.substr(0, entry.find('=') + 1);
    bool is_set = false;
    for (const std::string& other : more) is_set |= std::string_view(other).starts_with(name);
    if (!is_set) out.emplace_back(entry);
  }
  return out;
}

// Between fork and exec: only what is safe there.
[[noreturn]] void become(char** command, char** environment, int log, pid_t parent) {
  setpgid(0, 0);  // so that it is killed with what it starts, and Ctrl-C is ours to handle
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(kNoProgram);
  const int nothing = open("/dev/null", O_RDONLY);
  dup2(nothing, STDIN_FILENO);
  dup2(log, STDOUT_FILENO);
  dup2(log, STDERR_FILENO);
  signal(SIGXFSZ, SIG_DFL);
  execvpe(command[0], command, environment);
  _exit(kNoProgram);
}

Result<int> wait_for(pid_t pid, const std::function<bool()>& tick) {
  int status = 0;
  for (;;) {
    const pid_t ended = waitpid(pid, &status, WNOHANG);
    if (ended < 0 && errno != EINTR)
      return error(Code::io_error, "lost the child process: {}", std::strerror(errno));
    if (ended == pid) return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    if (!tick()) {
      kill(-pid, SIGKILL);
      kill(pid, SIGKILL);  // in case it had not made its group yet
      while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
      }
      return error(Code::cancelled, "interrupted");
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
}

}  // namespace

Result<int> run_child(const Child& child, const std::function<bool()>& tick) {
  const int log = open(child.log.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  if (log < 0) return error(Code::io_error, "cannot write {}: {}", child.log, std::strerror(errno));
  auto words = child.command;
  auto variables = joined_environment(child.environment);
  const auto command = pointers(words);
  const auto environment = pointers(variables);
  const pid_t parent = getpid();
  const pid_t pid = fork();
  if (pid == 0)
    become(const_cast<char**>(command.data()), const_cast<char**>(environment.data()), log, parent);
  close(log);
  if (pid < 0) return error(Code::io_error, "cannot start a process: {}", std::strerror(errno));
  auto status = wait_for(pid, tick);
  if (status.ok() && *status == kNoProgram)
    return error(Code::not_found, "no program '{}' on this machine", child.command[0]);
  return status;
}

}  // namespace millrace
