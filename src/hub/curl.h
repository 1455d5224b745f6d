// What every use of libcurl starts from: one handle with its headers, for http.cpp and
// http_call.cpp alone.
#pragma once

#include <curl/curl.h>

#include <memory>
#include <string>
#include <vector>

#include "base/status.h"

namespace millrace {

struct CurlHandle {
  std::unique_ptr<CURL, decltype(&curl_easy_cleanup)> curl{nullptr, curl_easy_cleanup};
  std::unique_ptr<curl_slist, decltype(&curl_slist_free_all)> headers{nullptr, curl_slist_free_all};
};

// `headers`: "Name: value". `token`: as "Authorization: Bearer"; empty: none.
Result<CurlHandle> open_curl(const std::string& url, const std::vector<std::string>& headers,
                             const std::string& token);

}  // namespace millrace
