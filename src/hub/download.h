// A file from a URL onto the disk, whole and checked or not at all: its bytes go to PATH.part,
// which a later call takes up where it was left, and become PATH when size and checksum are right
// and the disk has them. Two downloads of one file do not meet: the second is refused.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "base/status.h"
#include "hub/digest.h"
#include "hub/http.h"

namespace millrace {

struct Download {
  std::string url;
  std::string path;
  uint64_t bytes = 0;  // exactly; more are not taken
  Checksum checksum;   // without one nothing is taken up from an earlier call
};

// `progress` gets the bytes of this file that are on the disk.
Status download(const Download& what, const HttpOptions& options,
                const std::function<void(uint64_t)>& progress);

// Puts a finished file in its place: bytes and name are on the disk when it returns.
Status move_into_place(const std::string& from, const std::string& to);

// An error that says how much is missing unless the disk of `folder` has room for so much.
Status need_room(const std::string& folder, uint64_t bytes);

// With those above it; an error names the first that cannot be made.
Status make_folder(const std::string& path);

}  // namespace millrace
