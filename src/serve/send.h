// Whole replies as JSON, for every route.
#pragma once

#include <string>

#include "serve/api_error.h"
#include "serve/api_request.h"
#include "serve/http.h"

namespace millrace::serve {

// In the shape that clients of this path expect.
std::string error_body(const std::string& path, const ApiError& error);
void send_error(Reply& reply, const std::string& path, const ApiError& error);
void send_json(Reply& reply, const Json& json, int status = 200, HttpHeaders headers = {});

ApiError busy();     // too many wait
ApiError loading();  // the model is not there yet

}  // namespace millrace::serve
