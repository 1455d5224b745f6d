#include "hub/curl.h"

namespace millrace {
namespace {

constexpr long kConnectSeconds = 20;

}  // namespace

Result<CurlHandle> open_curl(const std::string& url, const std::vector<std::string>& headers,
                             const std::string& token) {
  static const CURLcode started = curl_global_init(CURL_GLOBAL_DEFAULT);
  CurlHandle out;
  if (started == CURLE_OK) out.curl.reset(curl_easy_init());
  if (!out.curl) return error(Code::out_of_memory, "cannot start libcurl");
  CURL* curl = out.curl.get();
  curl_easy_setopt(curl, CURLOPT_URL, url.c_str());
  curl_easy_setopt(curl, CURLOPT_USERAGENT, "millrace");
  curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http,https");
  curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT, kConnectSeconds);
  const auto add = [&](const std::string& header) {
    out.headers.reset(curl_slist_append(out.headers.release(), header.c_str()));
  };
  for (const std::string& header : headers) add(header);
  // libcurl drops a header of this name when a redirect leaves host, port or protocol.
  if (!token.empty()) add("Authorization: Bearer " + token);
  if (out.headers) curl_easy_setopt(curl, CURLOPT_HTTPHEADER, out.headers.get());
  return out;
}

}  // namespace millrace
