#include "hub/http.h"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <thread>

#include "base/utf8.h"
#include "hub/curl.h"

namespace millrace {
namespace {

constexpr long kStallSeconds = 30;  // at less than a kilobyte a second
constexpr double kLongestPauseSeconds = 60;
constexpr uint64_t kProgressBytes = 1 << 20;  // so much anew starts the count of tries again

struct Attempt {
  HttpSink& sink;
  const HttpOptions& options;
  CURL* curl;
  bool has_begun = false;
  Status failure;  // the sink's, or what the answer's head was wrong with
};

// The first byte of "Content-Range: bytes 5-9/10"; -1 when there is none.
int64_t range_start(CURL* curl) {
  curl_header* header = nullptr;
  if (curl_easy_header(curl, "Content-Range", 0, CURLH_HEADER, -1, &header) != CURLHE_OK) return -1;
  const std::string_view text = header->value;
  constexpr std::string_view kUnit = "bytes ";
  int64_t start = -1;
  if (text.starts_with(kUnit))
    std::from_chars(text.data() + kUnit.size(), text.data() + text.size(), start);
  return start;
}

Status begin(Attempt& attempt) {
  long status = 0;
  curl_easy_getinfo(attempt.curl, CURLINFO_RESPONSE_CODE, &status);
  if (status != 206) return attempt.sink.restart();
  if (range_start(attempt.curl) == static_cast<int64_t>(attempt.sink.size())) return {};
  return error(Code::corrupt, "the server sent another part of the file than requested");
}

size_t on_bytes(char* data, size_t one, size_t n, void* user) {
  Attempt& attempt = *static_cast<Attempt*>(user);
  if (!attempt.has_begun) attempt.failure = begin(attempt);
  attempt.has_begun = true;
  if (attempt.failure.ok()) attempt.failure = attempt.sink.take(data, one * n);
  return attempt.failure.ok() ? one * n : 0;
}

int on_tick(void* user, curl_off_t, curl_off_t, curl_off_t, curl_off_t) {
  return static_cast<const Attempt*>(user)->options.stopped() ? 1 : 0;
}

Result<CurlHandle> make_handle(const std::string& url, const HttpOptions& options) {
  MILLRACE_ASSIGN(CurlHandle handle, open_curl(url, {}, options.token));
  CURL* curl = handle.curl.get();
  const bool is_secure = url.starts_with("https://");
  curl_easy_setopt(curl, CURLOPT_REDIR_PROTOCOLS_STR, is_secure ? "https" : "http,https");
  curl_easy_setopt(curl, CURLOPT_FOLLOWLOCATION, 1L);
  curl_easy_setopt(curl, CURLOPT_MAXREDIRS, 10L);
  curl_easy_setopt(curl, CURLOPT_FAILONERROR, 1L);
  curl_easy_setopt(curl, CURLOPT_LOW_SPEED_LIMIT, 1000L);
  curl_easy_setopt(curl, CURLOPT_LOW_SPEED_TIME, kStallSeconds);
  if (!options.certificates.empty())
    curl_easy_setopt(curl, CURLOPT_CAINFO, options.certificates.c_str());
  return handle;
}

Status status_failure(const std::string& url, long status) {
  if (status == 401 || status == 403)
    return error(Code::unavailable,
                 "{}: the server answered {}: it does not exist, or it needs a token (HF_TOKEN) of "
                 "an account with access",
                 url, status);
  if (status == 404 || status == 410)
    return error(Code::not_found, "{}: the server answered {}: not found", url, status);
  if (status == 429)
    return error(Code::unavailable,
                 "{}: the server answered 429: too many requests; try again later, or "
                 "with a token (HF_TOKEN)",
                 url);
  return error(Code::unavailable, "{}: the server answered {}", url, status);
}

// Whether another try may end otherwise.
bool is_passing(CURLcode code, long status) {
  switch (code) {
    case CURLE_HTTP_RETURNED_ERROR:
      return status == 408 || status == 429 || status >= 500;
    case CURLE_UNSUPPORTED_PROTOCOL:
    case CURLE_URL_MALFORMAT:
    case CURLE_TOO_MANY_REDIRECTS:
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_CACERT_BADFILE:
    case CURLE_OUT_OF_MEMORY:
      return false;
    default:
      return true;
  }
}

struct Outcome {
  Status status;
  bool may_retry = false;
  double pause_seconds = 0;  // the server asks for at least this
};

Outcome judge(CURLcode code, const std::string& url, const char* detail, Attempt& attempt) {
  if (attempt.options.stopped()) return {error(Code::cancelled, "interrupted")};
  if (!attempt.failure.ok()) return {attempt.failure};
  if (code == CURLE_OK && attempt.sink.is_whole()) return {};
  if (code == CURLE_OK)
    return {error(Code::unavailable, "{}: the download broke off after {} bytes", url,
                  attempt.sink.size()),
            true};
  long status = 0;
  curl_off_t pause = 0;
  curl_easy_getinfo(attempt.curl, CURLINFO_RESPONSE_CODE, &status);
  curl_easy_getinfo(attempt.curl, CURLINFO_RETRY_AFTER, &pause);
  const bool may_retry = is_passing(code, status);
  if (code == CURLE_HTTP_RETURNED_ERROR && status == 416 && attempt.sink.size() > 0) {
    const Status fresh = attempt.sink.restart();  // what we have is no beginning of what is there
    return {fresh.ok() ? status_failure(url, status) : fresh, fresh.ok()};
  }
  if (code == CURLE_HTTP_RETURNED_ERROR)
    return {status_failure(url, status), may_retry, static_cast<double>(pause)};
  return {error(Code::unavailable, "{}: {}", url,
                *detail != '\0' ? printable(detail, 300) : curl_easy_strerror(code)),
          may_retry};
}

Outcome try_once(const std::string& url, HttpSink& sink, const HttpOptions& options) {
  auto handle = make_handle(url, options);
  if (!handle.ok()) return {handle.status()};
  CURL* curl = handle->curl.get();
  Attempt attempt{sink, options, curl, false, {}};
  char detail[CURL_ERROR_SIZE] = "";
  const std::string range = std::to_string(sink.size()) + "-";
  if (sink.size() > 0) curl_easy_setopt(curl, CURLOPT_RANGE, range.c_str());
  curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, on_bytes);
  curl_easy_setopt(curl, CURLOPT_WRITEDATA, &attempt);
  curl_easy_setopt(curl, CURLOPT_XFERINFOFUNCTION, on_tick);
  curl_easy_setopt(curl, CURLOPT_XFERINFODATA, &attempt);
  curl_easy_setopt(curl, CURLOPT_NOPROGRESS, 0L);
  curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, detail);
  return judge(curl_easy_perform(curl), url, detail, attempt);
}

// False when it was stopped meanwhile.
bool pause_for(double seconds, const HttpOptions& options) {
  using Clock = std::chrono::steady_clock;
  const auto end = Clock::now() + std::chrono::duration<double>(seconds);
  while (Clock::now() < end) {
    if (options.stopped()) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  return true;
}

class TextSink : public HttpSink {
 public:
  explicit TextSink(size_t max_bytes) : max_bytes_(max_bytes) {}
  uint64_t size() const override { return 0; }  // a text is always asked for whole
  bool is_whole() const override { return true; }
  Status restart() override {
    text_.clear();
    return {};
  }
  Status take(const char* data, size_t n) override {
    if (text_.size() + n > max_bytes_)
      return error(Code::corrupt, "the server's answer is longer than {} bytes", max_bytes_);
    text_.append(data, n);
    return {};
  }
  std::string text() && { return std::move(text_); }

 private:
  const size_t max_bytes_;
  std::string text_;
};

}  // namespace

Status http_get(const std::string& url, HttpSink& sink, const HttpOptions& options) {
  uint64_t last_size = sink.size();
  for (int n_tried = 1;; ++n_tried) {
    Outcome outcome = try_once(url, sink, options);
    if (outcome.status.ok() || !outcome.may_retry) return outcome.status;
    if (sink.size() >= last_size + kProgressBytes) n_tried = 1;
    last_size = sink.size();
    if (n_tried >= options.n_tries || outcome.pause_seconds > kLongestPauseSeconds)
      return outcome.status;
    const double growing = 0.25 * static_cast<double>(1 << std::min(n_tried, 5));
    if (!pause_for(std::max(growing, outcome.pause_seconds), options))
      return error(Code::cancelled, "interrupted");
  }
}

Result<std::string> http_get_text(const std::string& url, size_t max_bytes,
                                  const HttpOptions& options) {
  TextSink sink(max_bytes);
  MILLRACE_TRY(http_get(url, sink, options));
  return std::move(sink).text();
}

std::string url_path(std::string_view text) {
  constexpr std::string_view kPlain =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~/";
  std::string out;
  for (const char c : text)
    if (kPlain.find(c) != std::string_view::npos)
      out += c;
    else
      out += fmt::format("%{:02X}", static_cast<unsigned char>(c));
  return out;
}

}  // namespace millrace
