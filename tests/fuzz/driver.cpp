// Runs one fuzz target (LLVMFuzzerTestOneInput) where the compiler brings no fuzzer: replays a
// corpus, then feeds it seeded mutations of the corpus for a number of seconds or runs. Whatever
// crashes, trips a sanitizer, takes too long on one input or allocates far beyond its size ends the
// program with a non-zero status and leaves the input in a file that replays it.
//   fuzz_x CORPUS_DIR [--seconds S] [--runs N] [--seed N]     replay, then mutate
//   fuzz_x FILE...                                            replay alone
#include <fcntl.h>
#include <fmt/format.h>
#include <malloc.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <new>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/philox.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);
// Of the sanitizers' run time, where there is one.
extern "C" __attribute__((weak)) void __sanitizer_set_death_callback(void (*callback)());

namespace {

namespace fs = std::filesystem;
using millrace::now_ns;
using millrace::Rng;

constexpr unsigned kSecondsPerInput = 10;
constexpr size_t kMaxInputBytes = 1 << 16;
// An input may make a target hold this much, and a multiple of its own size.
constexpr size_t kFreeBytes = 32 << 20;
constexpr size_t kBytesPerInputByte = 64;

// What the handlers below can reach: the input being run, and what it allocated.
struct Running {
  const uint8_t* data = nullptr;
  size_t size = 0;
  std::atomic<size_t> live_bytes{0};
  std::atomic<size_t> limit_bytes{SIZE_MAX};
  char name[256] = "fuzz-input";
};
Running running;

void say(const char* text) {
  (void)!write(STDERR_FILENO, text, std::strlen(text));
}

void keep_input() {
  running.limit_bytes = SIZE_MAX;
  const int fd = open(running.name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (fd < 0) return;
  (void)!write(fd, running.data, running.size);
  close(fd);
  say("the input was kept in ");
  say(running.name);
  say("\n");
}

void on_signal(int number) {
  say(number == SIGALRM ? "fuzz: too long on one input\n" : "fuzz: a crash\n");
  keep_input();
  _exit(1);
}

void catch_crashes() {
  std::signal(SIGALRM, on_signal);
  if (__sanitizer_set_death_callback != nullptr) {
    __sanitizer_set_death_callback(keep_input);
    std::signal(SIGABRT, on_signal);
    return;
  }
  for (const int number : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT})
    std::signal(number, on_signal);
}

void run_one(const std::string& input) {
  // A copy of exactly its size, so that a sanitizer sees a read past its end.
  std::vector<uint8_t> copy(input.begin(), input.end());
  running.data = copy.data();
  running.size = copy.size();
  running.limit_bytes = running.live_bytes + kFreeBytes + kBytesPerInputByte * copy.size();
  alarm(kSecondsPerInput);
  LLVMFuzzerTestOneInput(copy.data(), copy.size());
  alarm(0);
  running.limit_bytes = SIZE_MAX;
}

std::string read_file(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

std::vector<std::string> read_corpus(const fs::path& folder) {
  std::vector<fs::path> paths;
  for (const auto& entry : fs::recursive_directory_iterator(folder))
    if (entry.is_regular_file()) paths.push_back(entry.path());
  std::sort(paths.begin(), paths.end());
  std::vector<std::string> corpus;
  for (const auto& path : paths) corpus.push_back(read_file(path));
  return corpus;
}

// Changes an input in one of the ways that find a parser's mistakes.
class Mutator {
 public:
  Mutator(Rng& rng, const std::vector<std::string>& corpus) : rng_(rng), corpus_(corpus) {}

  std::string operator()() {
    std::string s = corpus_[rng_.below(corpus_.size())];
    for (uint64_t n = 1 + rng_.below(4); n > 0; --n) change(s);
    if (s.size() > kMaxInputBytes) s.resize(kMaxInputBytes);
    return s;
  }

 private:
  size_t place(const std::string& s) { return rng_.below(s.size() + 1); }
  size_t length(const std::string& s, size_t from) {
    return std::min<size_t>(s.size() - from, 1 + rng_.below(rng_.below(4) == 0 ? 256 : 16));
  }

  void change(std::string& s) {
    switch (rng_.below(9)) {
      case 0:
        return flip_bit(s);
      case 1:
        return set_byte(s);
      case 2:
        return set_number(s);
      case 3:
        return erase(s);
      case 4:
        return insert(s);
      case 5:
        return repeat(s);
      case 6:
        return splice(s);
      case 7:
        return move(s);
      default:
        s.resize(place(s));
    }
  }
  void flip_bit(std::string& s) {
    if (!s.empty()) s[rng_.below(s.size())] ^= static_cast<char>(1 << rng_.below(8));
  }
  void set_byte(std::string& s) {
    static constexpr std::string_view kBytes("\0\1\x7f\x80\xff\"\\{}[],:0-9'%#|.\n\xc3\xe2", 24);
    if (!s.empty()) s[rng_.below(s.size())] = kBytes[rng_.below(kBytes.size())];
  }
  // Counts, lengths and offsets of binary formats: edges, and neighbours of what is there.
  void set_number(std::string& s) {
    const size_t width = size_t{1} << rng_.below(4), at = place(s);
    if (s.size() - at < width) return;
    static constexpr uint64_t kNumbers[] = {0,
                                            1,
                                            2,
                                            0x7f,
                                            0x80,
                                            0xff,
                                            0x7fff,
                                            0xffff,
                                            0x7fffffff,
                                            0x80000000,
                                            0xffffffff,
                                            0x7fffffffffffffff,
                                            0x8000000000000000,
                                            0xffffffffffffffff,
                                            1 << 20};
    uint64_t value = 0;
    std::memcpy(&value, s.data() + at, width);
    value =
        rng_.below(2) == 0 ? value + rng_.below(17) - 8 : kNumbers[rng_.below(std::size(kNumbers))];
    std::memcpy(s.data() + at, &value, width);
  }
  void erase(std::string& s) {
    const size_t at = place(s);
    s.erase(at, length(s, at));
  }
  void insert(std::string& s) {
    std::string bytes(1 + rng_.below(16), static_cast<char>(rng_.next_u32()));
    if (rng_.below(2) == 0)
      for (char& c : bytes) c = static_cast<char>(rng_.next_u32());
    s.insert(place(s), bytes);
  }
  void repeat(std::string& s) {
    const size_t at = place(s);
    const std::string piece = s.substr(at, length(s, at));
    for (uint64_t n = 1 + rng_.below(rng_.below(8) == 0 ? 1000 : 4); n > 0; --n)
      s.insert(at, piece);
  }
  void splice(std::string& s) {
    const std::string& other = corpus_[rng_.below(corpus_.size())];
    const size_t from = place(other);
    s.insert(place(s), other, from, length(other, from));
  }
  void move(std::string& s) {
    const size_t at = place(s);
    const std::string piece = s.substr(at, length(s, at));
    s.erase(at, piece.size());
    s.insert(place(s), piece);
  }

  Rng& rng_;
  const std::vector<std::string>& corpus_;
};

struct Options {
  std::vector<std::string> paths;
  double seconds = 0;
  uint64_t runs = UINT64_MAX;
  uint64_t seed = 1;
};

Options parse(int argc, char** argv) {
  Options o;
  bool bounded = false;
  for (int i = 1; i < argc; ++i) {
    const std::string_view arg = argv[i];
    if (!arg.starts_with("--")) {
      o.paths.emplace_back(arg);
      continue;
    }
    const char* value = i + 1 < argc ? argv[++i] : "";
    if (arg == "--seconds") o.seconds = std::atof(value);
    if (arg == "--runs") o.runs = std::strtoull(value, nullptr, 10);
    if (arg == "--seed") o.seed = std::strtoull(value, nullptr, 10);
    bounded |= arg == "--runs";
  }
  if (bounded && o.seconds == 0) o.seconds = 1e9;
  return o;
}

uint64_t mutate(const Options& o, const std::vector<std::string>& corpus) {
  Rng rng(o.seed);
  Mutator mutated(rng, corpus);
  const int64_t end = now_ns() + static_cast<int64_t>(o.seconds * 1e9);
  uint64_t n = 0;
  for (; n < o.runs && now_ns() < end; ++n) run_one(mutated());
  return n;
}

}  // namespace

// Allocation is counted here, so that a length a file merely claims is caught when it is believed.
void* operator new(size_t bytes, const std::nothrow_t&) noexcept {
  void* p = std::malloc(bytes == 0 ? 1 : bytes);
  if (p == nullptr) return p;
  const size_t live = running.live_bytes += malloc_usable_size(p);
  if (live > running.limit_bytes) {
    say("fuzz: an input makes the target allocate beyond its budget\n");
    std::abort();
  }
  return p;
}
void* operator new(size_t bytes) {
  void* p = operator new(bytes, std::nothrow);
  if (p == nullptr) throw std::bad_alloc();
  return p;
}
void operator delete(void* p) noexcept {
  if (p != nullptr) running.live_bytes -= malloc_usable_size(p);
  std::free(p);
}
void operator delete(void* p, size_t) noexcept {
  operator delete(p);
}

int main(int argc, char** argv) {
  const Options o = parse(argc, argv);
  const std::string name = fs::path(argv[0]).filename();
  std::snprintf(running.name, sizeof(running.name), "%s-failed-input", name.c_str());
  catch_crashes();
  std::vector<std::string> corpus;
  for (const auto& path : o.paths)
    if (fs::is_directory(path))
      for (auto& input : read_corpus(path)) corpus.push_back(std::move(input));
    else
      corpus.push_back(read_file(path));
  if (corpus.empty()) {
    fmt::print(stderr,
               "{}: no corpus; usage: {} CORPUS_DIR|FILE... [--seconds S] [--runs N] [--seed N]\n",
               name, name);
    return 2;
  }
  for (const auto& input : corpus) run_one(input);
  const uint64_t n = mutate(o, corpus);
  fmt::print("{}: {} inputs replayed, {} mutations run (seed {})\n", name, corpus.size(), n,
             o.seed);
  return 0;
}
