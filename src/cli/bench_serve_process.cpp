#include "cli/bench_serve_process.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <fstream>
#include <sstream>

#include "base/clock.h"
#include "cli/interrupt.h"

namespace millrace::cli {
namespace {

constexpr int64_t kStartNs = 120'000'000'000;  // a large model is read from a disk

// A file in memory never blocks who writes it, as a pipe that nobody reads would.
Result<int> memory_file() {
  const int fd = memfd_create("millrace", MFD_CLOEXEC);
  if (fd < 0) return error(Code::io_error, "memfd_create failed: {}", strerror(errno));
  return fd;
}

std::string text_of(int fd) {
  std::string out;
  char bytes[4096];
  for (ssize_t n = 0; (n = pread(fd, bytes, sizeof bytes, static_cast<off_t>(out.size()))) > 0;)
    out.append(bytes, static_cast<size_t>(n));
  return out;
}

Result<pid_t> spawn(std::vector<std::string> args, int out, int err) {
  args.insert(args.begin(), "millrace");
  std::vector<char*> argv;
  for (std::string& arg : args) argv.push_back(arg.data());
  argv.push_back(nullptr);
  const pid_t pid = fork();
  if (pid < 0) return error(Code::io_error, "fork failed: {}", strerror(errno));
  if (pid > 0) return pid;
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  dup2(out, STDOUT_FILENO);
  dup2(err, STDERR_FILENO);
  execv("/proc/self/exe", argv.data());
  _exit(127);
}

// The last line that says something, for an error.
std::string last_line(std::string text) {
  while (text.ends_with('\n')) text.pop_back();
  const size_t at = text.find_last_of("\r\n");
  return at == std::string::npos ? text : text.substr(at + 1);
}

}  // namespace

Result<std::unique_ptr<ServerProcess>> ServerProcess::start(const std::vector<std::string>& args) {
  std::unique_ptr<ServerProcess> out(new ServerProcess());
  MILLRACE_ASSIGN(out->said_, memory_file());
  std::vector<std::string> all = {"serve", "--port", "0", "--kv-disk", "off", "--jobs", "off"};
  all.insert(all.end(), args.begin(), args.end());
  MILLRACE_ASSIGN(out->pid_, spawn(std::move(all), out->said_, out->said_));
  MILLRACE_TRY(out->wait_until_it_serves());
  return out;
}

Status ServerProcess::wait_until_it_serves() {
  const std::atomic<bool>& stop = catch_interrupts();
  for (const int64_t start_ns = now_ns(); now_ns() - start_ns < kStartNs; usleep(20000)) {
    const std::string said = text_of(said_);
    const size_t at = said.find(" at http://");
    const size_t end = at == std::string::npos ? at : said.find('\n', at);
    if (end != std::string::npos) {
      url_ = said.substr(at + 4, end - at - 4);
      return {};
    }
    if (stop) return error(Code::cancelled, "interrupted");
    if (waitpid(pid_, nullptr, WNOHANG) == pid_) {
      pid_ = -1;
      return error(Code::unavailable, "the server did not start: {}", last_line(said));
    }
  }
  return error(Code::unavailable, "the server did not start in time: {}",
               last_line(text_of(said_)));
}

void ServerProcess::end(int signal) {
  if (pid_ <= 0) return;
  kill(pid_, signal);
  while (waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
  }
  pid_ = -1;
}

void ServerProcess::kill_now() {
  end(SIGKILL);
}

ServerProcess::~ServerProcess() {
  end(SIGTERM);
  if (said_ >= 0) close(said_);
}

double ServerProcess::resident_mb() const {
  std::ifstream in(fmt::format("/proc/{}/status", pid_));
  for (std::string word; in >> word;)
    if (double kib = 0; word == "VmRSS:" && in >> kib) return kib * 1024 * 1e-6;
  return 0;
}

double ServerProcess::cpu_seconds() const {
  std::ifstream in(fmt::format("/proc/{}/stat", pid_));
  std::string line;
  std::getline(in, line);
  // Behind the name, which may hold anything: state and ten numbers, then user and system time.
  std::istringstream rest(line.substr(std::min(line.rfind(')') + 1, line.size())));
  std::string skipped;
  for (int i = 0; i < 11; ++i) rest >> skipped;
  double user = 0, system = 0;
  rest >> user >> system;
  return (user + system) / static_cast<double>(sysconf(_SC_CLK_TCK));
}

Result<std::string> output_of(const std::vector<std::string>& args) {
  MILLRACE_ASSIGN(const int out, memory_file());
  MILLRACE_ASSIGN(const int err, memory_file());
  MILLRACE_ASSIGN(const pid_t pid, spawn(args, out, err));
  int status = 0;
  while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  const std::string text = text_of(out), said = text_of(err);
  close(out);
  close(err);
  if (status != 0)
    return error(Code::unavailable, "millrace {} failed: {}", fmt::join(args, " "),
                 last_line(said));
  return text;
}

}  // namespace millrace::cli
