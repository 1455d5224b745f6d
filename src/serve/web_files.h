// The files of the page (web/), which are part of the program: made by cmake/WebFiles.cmake.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

namespace millrace::serve {

struct WebFile {
  std::string_view path, type, bytes;
};

std::span<const WebFile> web_files();

}  // namespace millrace::serve
