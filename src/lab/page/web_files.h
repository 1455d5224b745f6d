// The files of the lab's page (web/lab/ and what it shares with web/), which are part of the
// program: made by cmake/WebFiles.cmake.
#pragma once

#include <span>

#include "serve/web_files.h"

namespace millrace::lab {

std::span<const serve::WebFile> web_files();

}  // namespace millrace::lab
