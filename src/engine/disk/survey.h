// What lies in a folder of contexts on disk, for people: read without holding it, so a server may
// write meanwhile.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"
#include "engine/disk/files.h"

namespace millrace::disk {

inline constexpr char kNameFile[] = "model";  // whose contexts these are, as people call it

struct FolderFacts {
  std::string name;  // of the folder: the root of its contexts
  std::string model;
  uint64_t bytes = 0, n_records = 0, n_tokens = 0, n_damaged = 0;
  int64_t oldest_s = 0, newest_s = 0;
  bool is_held = false;  // by a process that serves from it
};

// The folders of models in this one; none where it does not exist.
Result<std::vector<FolderFacts>> survey(const std::string& parent);

// Removes one with all that is in it; unavailable where a process holds it.
Status remove_folder(const std::string& parent, const std::string& name);

// Writes the model's name into a folder that this process holds.
Status name_folder(Files& files, const std::string& model);

}  // namespace millrace::disk
