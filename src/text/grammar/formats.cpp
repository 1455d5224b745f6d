// The formats of strings as patterns. Narrower than the formats are where their grammar is long;
// never wider, but for the days of months.
#include <utility>

#include "text/grammar/schema.h"

// Adjacent literals join: formats that share a part share its text.
#define MILLRACE_DATE R"(\d{4}-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01]))"
#define MILLRACE_TIME \
  R"(([01]\d|2[0-3]):[0-5]\d:[0-5]\d(\.\d{1,9})?(Z|[+-]([01]\d|2[0-3]):[0-5]\d))"
#define MILLRACE_LABEL R"([A-Za-z0-9]([A-Za-z0-9-]{0,30}[A-Za-z0-9])?)"
#define MILLRACE_OCTET R"((25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d))"
#define MILLRACE_QUERY R"([A-Za-z0-9._~!$&'()*+,;=:@/?-]*)"

namespace millrace::grammar {

const char* format_pattern(std::string_view format) {
  static constexpr std::pair<std::string_view, const char*> kFormats[] = {
      {"date", "^" MILLRACE_DATE "$"},
      {"time", "^" MILLRACE_TIME "$"},
      {"date-time", "^" MILLRACE_DATE "T" MILLRACE_TIME "$"},
      {"duration", R"(^P(\d{1,9}W|\d{1,9}D(T\d{1,9}H)?|)"
                   R"(T(\d{1,9}H(\d{1,9}M(\d{1,9}S)?)?|\d{1,9}M(\d{1,9}S)?|\d{1,9}S))$)"},
      {"uuid", R"(^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$)"},
      {"email", R"(^[A-Za-z0-9_+-]{1,32}(\.[A-Za-z0-9_+-]{1,32})*@)"
                "(" MILLRACE_LABEL R"(\.)+[A-Za-z]{2,24}$)"},
      {"hostname", "^" MILLRACE_LABEL R"((\.)" MILLRACE_LABEL ")*$"},
      {"ipv4", "^(" MILLRACE_OCTET R"(\.){3})" MILLRACE_OCTET "$"},
      {"ipv6", R"(^([0-9a-fA-F]{1,4}:){7}[0-9a-fA-F]{1,4}$)"},
      {"uri", R"(^[a-z][a-z0-9+.-]{0,31}://[A-Za-z0-9._~-]+(:\d{1,5})?)"
              R"((/[A-Za-z0-9._~!$&'()*+,;=:@-]*)*)"
              R"((\?)" MILLRACE_QUERY ")?(#" MILLRACE_QUERY ")?$"},
  };
  for (const auto& [name, pattern] : kFormats)
    if (name == format) return pattern;
  return nullptr;
}

}  // namespace millrace::grammar
