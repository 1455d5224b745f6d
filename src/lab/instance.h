// A case made real: guarded host buffers for every port, filled from a seed, bound into args. It
// knows how to pack its weight for a variant, poison its outputs, and tell whether anything wrote
// outside them.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "kernels/case.h"
#include "memory/host.h"

namespace millrace::lab {

class Instance {
 public:
  // The content of port i is a function of (seed, i) alone.
  static Result<Instance> make(const Op& op, Case problem, uint64_t seed);

  const Op& op() const { return *op_; }
  const Case& problem() const { return case_; }
  std::byte* port(size_t i) const { return buffers_[i].data(); }

  // The host bytes of every port as a variant wants them: the weight in its layout (packed once),
  // everything else as it is. A device mirrors these and binds its own pointers.
  Result<std::vector<std::span<std::byte>>> views_for(const Variant& variant);
  // Args bound to those views.
  Result<ArgsBox> args_for(const Variant& variant);

  // After the inputs of some rows were changed: makes the ports that follow from them again.
  void derive();
  // Before a run: outputs get poison, another pattern every time; in-place ports their original
  // content again.
  void reset_outputs();
  // Other content in the same memory, as make() would fill it from this seed.
  void refill(uint64_t seed);
  // After a run: slack before every buffer intact, inputs unchanged.
  Status check_untouched() const;

 private:
  ArgsBox bind(std::span<const std::span<std::byte>> views) const;
  void fill(uint64_t seed);

  const Op* op_ = nullptr;
  Case case_;
  uint64_t seed_ = 0, n_resets_ = 0;
  std::vector<GuardedBuffer> buffers_;
  std::vector<std::vector<std::byte>> originals_;  // of inout ports
  std::vector<uint64_t> input_hashes_;
  std::map<std::string, GuardedBuffer, std::less<>> packed_;
};

}  // namespace millrace::lab
