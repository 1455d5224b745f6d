// Bench results as text: the table and its JSON.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "lab/row.h"
#include "lab/verdict.h"

namespace millrace::lab {

// Columns as wide as the longest name in them.
struct TableWidths {
  size_t op = 2, problem = 4, variant = 7, mode = 4;
};
TableWidths widths_of(const std::vector<PlanItem>& plan);
TableWidths widths_of(const std::vector<Row>& rows);

std::string table_header(const TableWidths& widths);
std::string table_line(const Row& row, const TableWidths& widths);
// "ceilings before: read 24.1 GB/s; i8 180 GMAC/s (avx512_vnni), ..."
std::string ceilings_line(std::string_view when, const Roof& roof);
nlohmann::json to_json(const Row& row);
nlohmann::json to_json(const Roof& roof);
nlohmann::json to_json(const VerdictRow& row);

// "12.3", "0.456", "1234", "4.56e-04": three significant digits or all before the point.
std::string short_number(double value);

}  // namespace millrace::lab
