// Schemas for tests and benches: tools as coding agents have them, and what hostile clients send.
#pragma once

#include <string>
#include <vector>

namespace millrace::grammar::test {

struct NamedSchema {
  std::string name, schema;
};

const std::vector<NamedSchema>& tool_schemas();
const std::vector<NamedSchema>& hostile_schemas();

}  // namespace millrace::grammar::test
