// The contract every kernel signs. An Op has variants (fastest first, reference last), cases
// (shapes and data), a floor, and weight layouts; engine, tests and lab walk the same tables. Args
// are plain structs (each op's args.h); they travel type-erased here as `const void*`.
#pragma once

#include <cstddef>
#include <cstdint>
#include <new>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "base/status.h"
#include "machine/isa.h"
#include "machine/machine.h"
#include "machine/team.h"
#include "tensor/dtype.h"

namespace millrace {

// How the lanes of a team share out one call: each takes some rows whole, or some columns of every
// row. Who builds a Program decides, so that neighbouring calls can give a lane the same part and
// need no barrier between them. Several products over the same rows can share their columns out
// together: the call's own then begin at `offset` of `total`.
enum class SplitBy : unsigned char { rows, columns };
struct Split {
  SplitBy by = SplitBy::rows;
  int64_t grain = 1;  // of columns, in elements: a part begins at a multiple of it
  int64_t offset = 0;
  int64_t total = 0;  // 0: the call's own

  bool operator==(const Split&) const = default;
};

// Where a variant runs: one lane of a CPU team, or a CUDA stream. `run` never forks, allocates or
// waits for the host.
struct Exec {
  int lane = 0;
  int n_lanes = 1;
  Barrier* barrier = nullptr;  // set when n_lanes > 1
  void* stream = nullptr;      // cudaStream_t, for device variants
  std::byte* workspace = nullptr;
  size_t workspace_bytes = 0;
  Split split = {};

  void sync() const {
    if (barrier != nullptr) barrier->wait(lane);
  }
  // For ops that share out something else than rows or columns.
  Share share(int64_t n, int64_t grain = 1) const { return share_of(n, lane, n_lanes, grain); }
  // This lane's part of a call over `n` rows, and of `n` columns.
  Share rows(int64_t n) const {
    return split.by == SplitBy::rows ? share_of(n, lane, n_lanes) : Share{0, n};
  }
  Share columns(int64_t n) const;
};

// A numerics class is a canonical order of arithmetic. Variants of one class give the same bits for
// a row, whatever else is in the batch; `reference` is the definition of right and promises no bits
// to others.
inline constexpr std::string_view kReference = "reference";

struct Variant {
  std::string_view name;  // what it is: avx2, avx512_vnni, sm90_splitk
  Isa isa = Isa::generic;
  std::string_view numerics;          // class, as <device>.<op>.<order>: "cpu.rmsnorm.lanes16"
  std::string_view layout = "plain";  // of the weight, one of the op's layouts()

  // Pure: whether this variant computes these args (shape and types; the ISA is checked by
  // accepts()).
  bool (*takes)(const void* args) = nullptr;
  // Shared by all lanes of a run; 0 when null.
  size_t (*workspace_bytes)(const void* args, int n_lanes) = nullptr;
  Status (*run)(const void* args, Exec& exec) = nullptr;
};

bool accepts(const Variant& variant, const void* args, const Machine& machine);

// A weight's byte order for some variants. `plain` (rows as in the file) is never listed.
struct Layout {
  std::string_view name;
  // Outputs that are packed as one unit. Rows [a, b) of a weight can be packed by themselves where
  // both are multiples of it (b may be the last row): they are the packed bytes from bytes() of the
  // first a rows on.
  int64_t row_grain = 1;
  size_t (*bytes)(const void* args) = nullptr;  // of the packed weight
  // Packs `plain` (the weight rows as in the file) into `packed`; a whole weight's is 64-byte
  // aligned.
  void (*pack)(const void* args, const void* plain, void* packed) = nullptr;
  // The exact inverse; null where packing rounds.
  void (*unpack)(const void* args, const void* packed, void* plain) = nullptr;
};

// The least any implementation must spend, counted from the definition: each input byte read once,
// each output byte written once, at storage precision.
struct Floor {
  double read_bytes = 0;
  double write_bytes = 0;
  double i8_macs = 0;    // int8 multiply-adds
  double f32_macs = 0;   // f32 multiply-adds
  double bf16_macs = 0;  // bf16 multiply-adds (tensor cores, AVX512-BF16)
  int phases = 1;        // dependent steps: where all of one must end before the next begins
};

struct Case;

// How an op's calls can be shared out, by every variant alike; by neither: in a way of its own, and
// a lane may then read and write any of it.
struct Splits {
  bool by_rows = false;
  bool by_columns = false;
  int64_t (*grain)(const void* args) = nullptr;  // least for columns; 1 when null
};

// Args are plain structs of at most this size; one box holds any op's.
struct ArgsBox {
  alignas(64) std::byte bytes[512]{};
};

template <class Args>
void put_args(ArgsBox& box, const Args& args) {
  static_assert(std::is_trivially_copyable_v<Args> && sizeof(Args) <= sizeof(ArgsBox));
  new (box.bytes) Args(args);
}

template <class Args>
const Args& args_in(const ArgsBox& box) {
  static_assert(std::is_trivially_copyable_v<Args> && sizeof(Args) <= sizeof(ArgsBox));
  return *std::launder(reinterpret_cast<const Args*>(box.bytes));
}

// What a step binds a call to: its values and weights where they lie.
struct BoundValue {
  void* data = nullptr;
  DType type = DType::f32;
  int64_t n_rows = 0;
  int64_t n_each = 1;  // vectors of a row
  int64_t width = 0;   // of one
};
struct BoundWeight {
  const void* data = nullptr;
  DType type = DType::f32;
};
// The pages of one layer, and where the rows of the step lie in them.
struct BoundKv {
  void* k_pages = nullptr;
  void* v_pages = nullptr;
  const int* slots = nullptr;
  const int* tables = nullptr;
  int64_t n_pages = 0, page_tokens = 0, page_stride = 0, n_seqs = 0, max_pages = 0;
  DType type = DType::f16;
  // Of a device whose attention walks a list of work: where it lies, and what it is made for
  // (kernels/attention/work.h). No shares: there is none.
  int* work = nullptr;
  int n_shares = 0;
  int64_t n_records = 0;
};
struct Bound {
  std::span<const BoundValue> in, out;
  std::span<const BoundWeight> weights;
  BoundKv kv;
};

struct Op {
  std::string_view name;
  std::span<const Variant> (*variants)() = nullptr;
  // Plain loops in the order of a numerics class, on any CPU and over plain weights: what a variant
  // of the class gives is right where it is what its witness gives, bit for bit. Nobody else calls
  // them. Null: no class of this op has one.
  std::span<const Variant> (*witnesses)() = nullptr;
  std::vector<Case> (*cases)() = nullptr;
  Status (*validate)(const void* args) = nullptr;
  // The shape as a profile key, for example "rows=1 n=576 k=576 w=q4_0".
  std::string (*key)(const void* args) = nullptr;
  // The least that a call with these args must spend. It reads what decides that from where the
  // args point (positions), so they must be bound, and to the host's memory.
  Floor (*floor)(const void* args) = nullptr;
  std::span<const Layout> (*layouts)() = nullptr;  // null when the op has no packed weight
  Splits splits = {};
  // Completes args that hold what an architecture said (widths, constants) with addresses, types
  // and the number of rows. Null: no step calls this op.
  void (*bind)(const Bound& bound, void* args) = nullptr;
  // What a device reads input 0 as beside a weight of this type; null: as the device keeps it.
  DType (*input_type)(DType weight, bool on_cuda) = nullptr;
  bool in_place = false;  // output 0 may lie where input 0 does
  // Whether a call can also do the next one of the same op, whose inputs then follow its own; if so
  // `args` become those of both. For devices where a launch costs more than sharing out a call.
  bool (*absorb)(void* args, const void* next) = nullptr;
};

// How a call is shared out when nothing else decides: by columns where the op can.
Split default_split(const Op& op, const void* args);

// Every op of the house, in ops.cpp: the only place that lists them.
std::span<const Op* const> ops();
const Op* op_named(std::string_view name);
const Layout* layout_named(const Op& op, std::string_view name);

// Typed functions behind the erased pointers:
//   .run = erase_run<Args, avx2::run>, .takes = erase_takes<Args, avx2::takes>
template <class Args, Status (*Run)(const Args&, Exec&)>
Status erase_run(const void* args, Exec& exec) {
  return Run(*static_cast<const Args*>(args), exec);
}
template <class Args, bool (*Takes)(const Args&)>
bool erase_takes(const void* args) {
  return Takes(*static_cast<const Args*>(args));
}
template <class Args, size_t (*Bytes)(const Args&, int)>
size_t erase_workspace(const void* args, int n_lanes) {
  return Bytes(*static_cast<const Args*>(args), n_lanes);
}
template <class Args, Status (*Validate)(const Args&)>
Status erase_validate(const void* args) {
  return Validate(*static_cast<const Args*>(args));
}
template <class Args, void (*Bind)(const Bound&, Args&)>
void erase_bind(const Bound& bound, void* args) {
  Bind(bound, *static_cast<Args*>(args));
}
template <class Args, Floor (*FloorOf)(const Args&)>
Floor erase_floor(const void* args) {
  return FloorOf(*static_cast<const Args*>(args));
}
template <class Args, std::string (*Key)(const Args&)>
std::string erase_key(const void* args) {
  return Key(*static_cast<const Args*>(args));
}

}  // namespace millrace
