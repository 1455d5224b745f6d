#include "exec/step.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace millrace {

StepSpec::StepSpec() {
  values.resize(kStepInputs, {.kind = Kind::index, .width = 1});
  values[kWantedRows].count = Count::outputs;
}

Count StepSpec::count_of(const Node& node) const {
  const int value = node.out.empty() ? node.in[0] : node.out[0];
  return values[static_cast<size_t>(value)].count;
}

std::string describe(const StepSpec& spec) {
  std::string out;
  for (size_t i = 0; i < spec.nodes.size(); ++i) {
    const Node& node = spec.nodes[i];
    out += fmt::format("{} {} v{} <- v{}", i, node.op->name, fmt::join(node.out, ",v"),
                       fmt::join(node.in, ",v"));
    for (const int w : node.weights)
      out += fmt::format(" * {}", spec.weights[static_cast<size_t>(w)].name);
    out += '\n';
  }
  return out;
}

}  // namespace millrace
