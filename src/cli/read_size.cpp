#include "cli/read_size.h"

#include <cmath>
#include <string_view>

namespace millrace::cli {

Result<int64_t> read_size(const std::string& option, const std::string& text) {
  size_t n = 0;
  double value = 0;
  try {
    value = std::stod(text, &n);
  } catch (...) {
    n = 0;
  }
  std::string_view unit = std::string_view(text).substr(n);
  for (const std::string_view ending : {"iB", "B"})
    if (unit.ends_with(ending)) unit.remove_suffix(ending.size());
  constexpr std::string_view kUnits = "KMGT";
  double factor = 1;
  if (unit.size() == 1 && kUnits.find(unit[0]) != std::string_view::npos)
    factor = std::exp2(10.0 * static_cast<double>(kUnits.find(unit[0]) + 1));
  else if (!unit.empty())
    n = 0;
  if (n == 0 || !(value * factor >= 1) || value * factor > 1e15)
    return error(Code::invalid_argument, "{} '{}' is no size; give one like 8G or 512M", option,
                 text);
  return static_cast<int64_t>(value * factor);
}

}  // namespace millrace::cli
