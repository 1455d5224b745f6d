// The tables of the lab's database and how older files become newer ones. Everything that says what
// a file may hold is in schema.cpp: tables, indices, and the triggers that keep measurements,
// events and predictions from being changed afterwards, by this program or any other.
#pragma once

#include <string_view>

#include "base/status.h"

struct sqlite3;

namespace millrace::lab {

inline constexpr int kSchema = 3;
inline constexpr int kApplication = 0x4d696c6c;  // "Mill": what `file` knows it by

struct FileState {
  bool empty = false;
  int64_t version = 0;
};

// An error for the database of another program, of a newer Millrace, or a damaged one. Reads only.
Result<FileState> inspect_file(sqlite3* db, std::string_view path);

// Makes the tables, or brings those of an older schema up to date; inside the caller's transaction,
// with foreign keys off. False when there was nothing to do.
Result<bool> migrate(sqlite3* db, std::string_view path);

}  // namespace millrace::lab
