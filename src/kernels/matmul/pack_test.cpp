// Every layout gives back the file's bytes: pack, then unpack, for each variant's cases.
#include <gtest/gtest.h>

#include <cstring>
#include <new>
#include <vector>

#include "kernels/case.h"
#include "kernels/matmul/op.h"

namespace millrace::matmul {
namespace {

struct Aligned {
  explicit Aligned(size_t bytes)
      : data(static_cast<std::byte*>(::operator new (bytes, std::align_val_t{64}))) {
    std::memset(data, 0xff, bytes);  // what pack does not write is caught
  }
  ~Aligned() { ::operator delete (data, std::align_val_t{64}); }
  Aligned(const Aligned&) = delete;
  Aligned& operator=(const Aligned&) = delete;
  std::byte* data;
};

void round_trip(const Layout& layout, const Case& problem, const ArgsBox& args) {
  const Port& port = problem.ports[0];
  ASSERT_EQ(port.role, Role::weight);
  std::vector<std::byte> plain(bytes_of(port)), back(plain.size());
  Rng rng(3, 0);
  port.fill(rng, plain.data());
  const Aligned packed(layout.bytes(args.bytes));
  layout.pack(args.bytes, plain.data(), packed.data);
  layout.unpack(args.bytes, packed.data, back.data());
  EXPECT_EQ(std::memcmp(plain.data(), back.data(), plain.size()), 0)
      << layout.name << " " << problem.name;
}

TEST(MatmulPack, UnpackIsTheInverseOfPack) {
  int n_checked = 0;
  for (const Variant& variant : variants()) {
    const Layout* layout = layout_named(kOp, variant.layout);
    if (layout == nullptr) continue;
    for (const Case& problem : kOp.cases()) {
      if (problem.timed) continue;
      ArgsBox args;
      const std::vector<void*> none(problem.ports.size());
      problem.bind(none, args);
      if (!variant.takes(args.bytes)) continue;
      round_trip(*layout, problem, args);
      ++n_checked;
    }
  }
  EXPECT_GT(n_checked, 0);
}

}  // namespace
}  // namespace millrace::matmul
