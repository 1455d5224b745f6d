#include "text/grammar/schema.h"

namespace millrace::grammar {

// Elements with a schema each, back to front, then any number of `rest`.
Result<int32_t> SchemaCompiler::tuple(const Json& prefix, int32_t rest, Lengths n, const At& at) {
  MILLRACE_TRY(spend(prefix.size(), at));
  const auto size = static_cast<uint32_t>(prefix.size());
  const int32_t comma = parts_.sequence({parts_.literal(","), space()});
  const int32_t end = parts_.sequence({space(), parts_.literal("]")});
  const int32_t another = parts_.sequence({comma, rest});
  const uint32_t min_rest = n.min > size ? n.min - size : 0;
  const uint32_t max_rest = n.max == kNoLimit ? kNoLimit : n.max > size ? n.max - size : 0;
  int32_t tail = n.max < size
                     ? parts_.never()
                     : parts_.sequence({parts_.repeat(another, another, min_rest, max_rest), end});
  for (uint32_t i = size; i > 0; --i) {
    MILLRACE_ASSIGN(const int32_t element, compile(prefix[i - 1], at.down("prefixItems", i - 1)));
    if (i == 1) {
      tail = parts_.sequence({element, tail});
      break;
    }
    const int32_t more = parts_.sequence({comma, element, tail});
    const bool may_end = i - 1 >= n.min && i - 1 <= n.max;
    tail = may_end ? parts_.alternatives({more, end}) : i - 1 > n.max ? parts_.never() : more;
  }
  if (n.max == 0) tail = parts_.never();
  if (n.min == 0) tail = parts_.alternatives({tail, parts_.literal("]")});
  return parts_.sequence({parts_.literal("["), space(), tail});
}

Result<int32_t> SchemaCompiler::array(const Json& schema, const At& at) {
  MILLRACE_ASSIGN(const Lengths n, lengths(schema, "minItems", "maxItems", at));
  const auto items = schema.find("items");
  // Older drafts: a list of items, and additionalItems for those after.
  const bool old = items != schema.end() && items->is_array();
  const auto prefix = old ? items : schema.find("prefixItems");
  const auto others = old ? schema.find("additionalItems") : items;
  const bool is_tuple = prefix != schema.end() && prefix->is_array() && !prefix->empty();
  if (prefix != schema.end() && !prefix->is_array())
    return wrong(at, "prefixItems", "it is not a list of schemas");
  const char* keyword = old ? "additionalItems" : "items";
  int32_t rest;
  if (others != schema.end()) {
    MILLRACE_ASSIGN(rest, compile(*others, at.down(keyword)));
  } else {
    // A tuple that says nothing of further elements is better closed, unless it needs them.
    const bool closed = is_tuple && n.min <= prefix->size();
    rest = closed ? parts_.never() : parts_.json(options_.compact);
  }
  if (is_tuple) return tuple(*prefix, rest, n, at);
  if (n.max == 0)
    return n.min > 0 ? parts_.never()
                     : parts_.sequence({parts_.literal("["), space(), parts_.literal("]")});
  if (n.min > n.max) return parts_.never();
  return parts_.array(rest, n.min, n.max, options_.compact);
}

}  // namespace millrace::grammar
