// What a window promises beyond the cases: it changes which tokens are seen, and no other bit.
#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "kernels/attention/cases.h"
#include "kernels/attention/op.h"
#include "memory/host.h"

namespace millrace::attention {
namespace {

class AttentionWindow : public testing::TestWithParam<DType> {
 protected:
  static constexpr long long kContext = 600, kRows = 6;

  AttentionWindow() {
    const Case c = make_case({.n_rows = kRows,
                              .n_heads = 4,
                              .n_kv_heads = 2,
                              .head_dim = 64,
                              .ctx = kContext,
                              .n_seqs = 2,
                              .batch = Batch::decode,
                              .kv_type = GetParam()});
    std::vector<void*> pointers;
    for (size_t i = 0; i < c.ports.size(); ++i) {
      ports_.push_back(HostBuffer::make(bytes_of(c.ports[i])).value());
      Rng rng(1, i);
      if (c.ports[i].fill) c.ports[i].fill(rng, ports_.back().data());
      pointers.push_back(ports_.back().data());
    }
    ArgsBox box;
    c.bind(pointers, box);
    std::memcpy(&args_, box.bytes, sizeof args_);
  }

  // What each CPU variant of this machine makes of it.
  static std::vector<std::vector<float>> run_all(Args args) {
    const Machine machine = find_machine();
    std::vector<std::vector<float>> outs;
    for (const Variant& variant : variants()) {
      if (is_cuda(variant.isa) || !accepts(variant, &args, machine)) continue;
      auto& out = outs.emplace_back(args.n_rows * args.n_heads * args.head_dim);
      args.out = out.data();
      const size_t bytes =
          variant.workspace_bytes == nullptr ? 0 : variant.workspace_bytes(&args, 1);
      const HostBuffer space = HostBuffer::make(bytes + 1).value();
      Exec exec{.workspace = space.data(), .workspace_bytes = bytes};
      EXPECT_TRUE(kOp.validate(&args).ok());
      EXPECT_TRUE(variant.run(&args, exec).ok());
    }
    return outs;
  }

  std::vector<HostBuffer> ports_;
  Args args_{};
};

TEST_P(AttentionWindow, OfTheWholeContextGivesTheBitsOfNone) {
  const auto without = run_all(args_);
  for (long long window : {kContext, kContext + 1, 1LL << 40}) {
    Args args = args_;
    args.window = window;
    EXPECT_EQ(run_all(args), without) << window;
  }
}

TEST_P(AttentionWindow, FromAChunkOnGivesTheBitsOfASequenceThatBeginsThere) {
  Args windowed = args_;
  windowed.window = kContext - kChunkTokens;
  Args shorter = args_;
  const std::vector<int> positions(kRows, kContext - 1 - kChunkTokens);
  shorter.positions = positions.data();
  shorter.tables += kChunkTokens / shorter.page_tokens;  // rows stay max_pages apart
  EXPECT_EQ(run_all(windowed), run_all(shorter));
}

INSTANTIATE_TEST_SUITE_P(Types, AttentionWindow,
                         testing::Values(DType::f16, DType::bf16, DType::f32),
                         [](const auto& info) { return std::string(name_of(info.param)); });

}  // namespace
}  // namespace millrace::attention
