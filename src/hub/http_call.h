// One HTTP request of any method to a server that runs a model, over libcurl, tried once: what the
// server answers, errors included, is the caller's to read. Downloads are in http.h.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace millrace {

struct HttpCall {
  std::string method = "GET", url = {};
  std::string body = {};                  // sent where the method is POST
  std::vector<std::string> headers = {};  // "Name: value"
  std::string token = {};                 // as "Authorization: Bearer"; empty: none
  // Without a byte, until it counts as broken off. A stream of our own server that has nothing to
  // say still sends a comment every ten seconds.
  long silence_s = 60;
  std::function<bool()> stopped = [] { return false; };
};

// The status. The body goes to `take` as it comes, which ends the call where it returns false.
// unavailable: there was no answer, or it broke off; cancelled: `stopped` said so.
Result<int> http_call(const HttpCall& call,
                      const std::function<bool(int status, std::string_view bytes)>& take);

struct HttpAnswer {
  int status = 0;
  std::string body = {};
};
// The whole of it; corrupt: it is longer than `max_bytes`.
Result<HttpAnswer> http_answer(const HttpCall& call, size_t max_bytes);

}  // namespace millrace
