// millrace bench --chain: the products of a whole model chained on the GPU, against its read
// bandwidth.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "cli/commands.h"
#include "lab/cuda_chain.h"

namespace millrace::cli {

int bench_chain(bool json) {
  constexpr int kSamples = 50;
  const auto chain = lab::measure_chain(find_machine(), kSamples);
  if (!chain.ok()) return fail(chain.status());
  const lab::ChainResult& c = chain.value();
  const lab::Interval us = lab::median_interval(c.us);
  const double gbps = c.read_bytes / us.mid * 1e-3;
  if (json) {
    fmt::print("{}\n", nlohmann::json{{"us", c.us},
                                      {"median_us", us.mid},
                                      {"read_bytes", c.read_bytes},
                                      {"gbps", gbps},
                                      {"read_gbps", c.read_gbps},
                                      {"share_of_read_bandwidth", gbps / c.read_gbps},
                                      {"products", c.n_products},
                                      {"variant", c.variant},
                                      {"witness", c.witness}}
                           .dump(2));
    return 0;
  }
  fmt::print(
      "Qwen3-0.6B weights, one row, {} products in one graph ({}, every output equal to {}):\n"
      "{:.1f} us [{:.1f}, {:.1f}], {:.0f} GB/s, {:.1f} % of the measured read bandwidth of {:.0f} "
      "GB/s\n",
      c.n_products, c.variant, c.witness, us.mid, us.lo, us.hi, gbps, 100 * gbps / c.read_gbps,
      c.read_gbps);
  return 0;
}

}  // namespace millrace::cli
