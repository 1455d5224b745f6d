// The witness of every gated activation: y = activation(gate) * up as a plain loop.
#pragma once

#include <limits>

#include "kernels/runs.h"
#include "tensor/element.h"

namespace millrace {

template <float (*kActivation)(float), class Args>
Status run_gated_plain(const Args& a, Exec& exec) {
  for_each_run(exec, a.n_rows, a.n, [&](int64_t first, int64_t n) {
    for (int64_t i = first; i < first + n; ++i) {
      const float y = kActivation(load_element(a.type, a.gate, i)) * load_element(a.type, a.up, i);
      store_element(a.type, a.y, i, y != y ? std::numeric_limits<float>::quiet_NaN() : y);
    }
  });
  return {};
}

}  // namespace millrace
