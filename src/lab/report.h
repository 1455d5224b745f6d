// Bench results as text: the table and its JSON.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "lab/row.h"

namespace millrace::lab {

std::string table_header();
std::string table_line(const Row& row);
// "ceilings before: read 24.1 GB/s; i8 180 GMAC/s (avx512_vnni), ..."
std::string ceilings_line(std::string_view when, const Roof& roof);
nlohmann::json to_json(const Row& row);
nlohmann::json to_json(const Roof& roof);

// "12.3", "0.456", "1234": three significant digits or all before the point.
std::string short_number(double value);

}  // namespace millrace::lab
