#include "hub/http_call.h"

#include "base/utf8.h"
#include "hub/curl.h"

namespace millrace {
namespace {

struct Transfer {
  CURL* curl;
  const HttpCall& call;
  const std::function<bool(int, std::string_view)>& take;
  bool has_enough = false;

  int status() const {
    long out = 0;
    curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &out);
    return static_cast<int>(out);
  }
};

size_t on_bytes(char* data, size_t one, size_t n, void* user) {
  Transfer& transfer = *static_cast<Transfer*>(user);
  transfer.has_enough = !transfer.take(transfer.status(), {data, one * n});
  return transfer.has_enough ? 0 : one * n;
}

int on_tick(void* user, curl_off_t, curl_off_t, curl_off_t, curl_off_t) {
  return static_cast<const Transfer*>(user)->call.stopped() ? 1 : 0;
}

void set_body(CURL* curl, const HttpCall& call) {
  if (call.method == "POST") {
    curl_easy_setopt(curl, CURLOPT_POST, 1L);
    curl_easy_setopt(curl, CURLOPT_POSTFIELDS, call.body.data());
    curl_easy_setopt(curl, CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(call.body.size()));
  } else if (call.method != "GET") {
    curl_easy_setopt(curl, CURLOPT_CUSTOMREQUEST, call.method.c_str());
  }
}

}  // namespace

Result<int> http_call(const HttpCall& call,
                      const std::function<bool(int status, std::string_view bytes)>& take) {
  std::vector<std::string> headers = call.headers;
  headers.emplace_back("Expect:");  // a large body need not ask first
  MILLRACE_ASSIGN(const CurlHandle handle, open_curl(call.url, headers, call.token));
  CURL* curl = handle.curl.get();
  Transfer transfer{curl, call, take};
  char detail[CURL_ERROR_SIZE] = "";
  curl_easy_setopt(curl, CURLOPT_LOW_SPEED_LIMIT, 1L);
  curl_easy_setopt(curl, CURLOPT_LOW_SPEED_TIME, call.silence_s);
  curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, on_bytes);
  curl_easy_setopt(curl, CURLOPT_WRITEDATA, &transfer);
  curl_easy_setopt(curl, CURLOPT_NOPROGRESS, 0L);
  curl_easy_setopt(curl, CURLOPT_XFERINFOFUNCTION, on_tick);
  curl_easy_setopt(curl, CURLOPT_XFERINFODATA, &transfer);
  curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, detail);
  set_body(curl, call);
  const CURLcode code = curl_easy_perform(curl);
  if (code == CURLE_OK || transfer.has_enough) return transfer.status();
  if (call.stopped()) return error(Code::cancelled, "interrupted");
  return error(Code::unavailable, "{}: {}", call.url,
               *detail != '\0' ? printable(detail, 300) : curl_easy_strerror(code));
}

Result<HttpAnswer> http_answer(const HttpCall& call, size_t max_bytes) {
  HttpAnswer out;
  bool is_long = false;
  MILLRACE_ASSIGN(out.status, http_call(call, [&](int, std::string_view bytes) {
                    is_long = out.body.size() + bytes.size() > max_bytes;
                    if (!is_long) out.body += bytes;
                    return !is_long;
                  }));
  if (is_long)
    return error(Code::corrupt, "{}: the answer is longer than {} bytes", call.url, max_bytes);
  return out;
}

}  // namespace millrace
