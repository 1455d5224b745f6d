#include "base/sqlite.h"

#include "base/utf8.h"

namespace millrace {
namespace {

constexpr char kFlags[] = "--db for the lab's file, --jobs for the server's folder of jobs";

}  // namespace

Status sqlite_failure(sqlite3* db, std::string_view path) {
  const int code = sqlite3_errcode(db);
  const char* message = sqlite3_errmsg(db);
  switch (code & 0xff) {
    case SQLITE_NOTADB:
    case SQLITE_CORRUPT:
      return error(
          Code::corrupt,
          "{} is damaged, or not a database of ours ({}); it was not changed: move it away "
          "or name another place ({})",
          path, message, kFlags);
    case SQLITE_FULL:
      return error(Code::io_error,
                   "no space left to write {} ({}); free some, or name another place ({})", path,
                   message, kFlags);
    case SQLITE_CONSTRAINT:
      return error(Code::invalid_argument, "{} refused a change: {}", path, message);
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
      return error(Code::unavailable, "{} is in use by another process", path);
    default:
      return error(Code::io_error, "cannot use {}: {}; name another place ({})", path, message,
                   kFlags);
  }
}

Status execute(sqlite3* db, std::string_view path, const std::string& sql) {
  if (sqlite3_exec(db, sql.c_str(), nullptr, nullptr, nullptr) == SQLITE_OK) return {};
  return sqlite_failure(db, path);
}

Result<int64_t> integer_of(sqlite3* db, std::string_view path, const char* sql) {
  Query query(db, path, sql);
  MILLRACE_ASSIGN(const bool row, query.step());
  return row ? query.integer(0) : int64_t{0};
}

}  // namespace millrace
