// The little of SQLite's interface that the lab and the jobs use, with every failure turned into a
// Status.
#pragma once

#include <sqlite3.h>

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>

#include "base/status.h"

namespace millrace {

// What went wrong on this connection, and what to do about it.
Status sqlite_failure(sqlite3* db, std::string_view path);

// Bytes as a parameter that is no text.
struct Blob {
  std::string_view bytes;
};

// A prepared statement. Columns and parameters are counted from 0 and 1 as SQLite does.
class Query {
 public:
  Query(sqlite3* db, std::string_view path, const char* sql) : db_(db), path_(path) {
    code_ = sqlite3_prepare_v2(db, sql, -1, &statement_, nullptr);
  }
  ~Query() { sqlite3_finalize(statement_); }
  Query(const Query&) = delete;
  Query& operator=(const Query&) = delete;

  template <class... T>
  Query& bind(const T&... values) {
    int i = 0;
    (bind_one(++i, values), ...);
    return *this;
  }

  // True while there is a row.
  Result<bool> step() {
    if (code_ != SQLITE_OK) return sqlite_failure(db_, path_);
    const int code = sqlite3_step(statement_);
    if (code == SQLITE_ROW) return true;
    if (code == SQLITE_DONE) return false;
    return sqlite_failure(db_, path_);
  }
  // Runs to the end, ready to be bound again.
  Status run() {
    MILLRACE_ASSIGN(const bool row, step());
    (void)row;
    sqlite3_reset(statement_);
    return {};
  }

  int64_t integer(int column) const { return sqlite3_column_int64(statement_, column); }
  std::optional<int64_t> maybe_integer(int column) const {
    return is_null(column) ? std::nullopt : std::optional(integer(column));
  }
  double real(int column) const { return sqlite3_column_double(statement_, column); }
  bool is_null(int column) const { return sqlite3_column_type(statement_, column) == SQLITE_NULL; }
  std::string text(int column) const {
    return bytes_of(column, reinterpret_cast<const char*>(sqlite3_column_text(statement_, column)));
  }
  std::string blob(int column) const {
    return bytes_of(column, static_cast<const char*>(sqlite3_column_blob(statement_, column)));
  }

 private:
  std::string bytes_of(int column, const char* first) const {
    if (first == nullptr) return "";
    return {first, static_cast<size_t>(sqlite3_column_bytes(statement_, column))};
  }

  template <class T>
  void bind_one(int i, const T& value) {
    if (code_ != SQLITE_OK) return;
    if constexpr (std::is_same_v<T, std::nullptr_t>) {
      code_ = sqlite3_bind_null(statement_, i);
    } else if constexpr (std::is_same_v<T, std::optional<int64_t>>) {
      value ? bind_one(i, *value) : bind_one(i, nullptr);
    } else if constexpr (std::is_same_v<T, Blob>) {
      const char* first = value.bytes.empty() ? "" : value.bytes.data();  // null would be NULL
      code_ = sqlite3_bind_blob64(statement_, i, first, value.bytes.size(), SQLITE_TRANSIENT);
    } else if constexpr (std::is_integral_v<T>) {
      code_ = sqlite3_bind_int64(statement_, i, static_cast<int64_t>(value));
    } else if constexpr (std::is_floating_point_v<T>) {
      code_ = sqlite3_bind_double(statement_, i, value);
    } else {
      const std::string_view text = value;
      code_ = sqlite3_bind_text(statement_, i, text.data(), static_cast<int>(text.size()),
                                SQLITE_TRANSIENT);
    }
  }

  sqlite3* db_;
  std::string_view path_;
  sqlite3_stmt* statement_ = nullptr;
  int code_ = SQLITE_OK;
};

// Statements without results.
Status execute(sqlite3* db, std::string_view path, const std::string& sql);
// The first column of the first row; 0 without one.
Result<int64_t> integer_of(sqlite3* db, std::string_view path, const char* sql);

// All or nothing: rolled back unless commit() succeeds.
class Transaction {
 public:
  Transaction(sqlite3* db, std::string_view path) : db_(db), path_(path) {}
  ~Transaction() {
    if (open_) sqlite3_exec(db_, "ROLLBACK", nullptr, nullptr, nullptr);
  }
  Transaction(const Transaction&) = delete;
  Transaction& operator=(const Transaction&) = delete;

  Status begin() { return exec("BEGIN IMMEDIATE", true); }
  Status commit() { return exec("COMMIT", false); }

 private:
  Status exec(const char* sql, bool open_after) {
    if (sqlite3_exec(db_, sql, nullptr, nullptr, nullptr) != SQLITE_OK)
      return sqlite_failure(db_, path_);
    open_ = open_after;
    return {};
  }

  sqlite3* db_;
  std::string_view path_;
  bool open_ = false;
};

}  // namespace millrace
