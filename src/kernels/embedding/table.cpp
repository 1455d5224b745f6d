#include <array>
#include <limits>

#include "kernels/embedding/cases.h"
#include "kernels/embedding/floor.h"
#include "kernels/embedding/op.h"
#include "tensor/format.h"
#ifdef MILLRACE_CUDA
#include "kernels/device.h"
#include "kernels/embedding/device.h"
#endif

namespace millrace::embedding {
namespace {

std::string key(const Args& a) {
  return fmt::format("rows={} n={} vocab={} table={}", a.n_rows, a.n, a.n_vocab,
                     name_of(a.table_type));
}

constexpr std::string_view kExact = "cpu.embedding.exact";

constexpr std::array kVariants = {
#ifdef MILLRACE_CUDA
    Variant{.name = "sm80",
            .isa = Isa::sm80,
            .numerics = "cuda.embedding.exact",
            .takes = erase_takes<Args, takes_sm80>,
            .run = erase_launch<Args, launch_sm80>},
#endif
    Variant{
        .name = "avx2", .isa = Isa::avx2, .numerics = kExact, .run = erase_run<Args, avx2::run>},
    Variant{.name = "reference", .numerics = kReference, .run = erase_run<Args, reference::run>},
};

bool has_codec(DType type) {
  return type != DType::i32 && type != DType::i8 && type != DType::u8 && type != DType::q8_row;
}

// The table is a weight, or rows that the step computed.
void bind(const Bound& b, Args& a) {
  const bool gathers = b.weights.empty();
  a.table = gathers ? b.in[0].data : b.weights[0].data;
  a.table_type = gathers ? b.in[0].type : b.weights[0].type;
  if (gathers) a.n_vocab = b.in[0].n_rows;
  a.ids = static_cast<const int*>(b.in.back().data);
  a.y = static_cast<float*>(b.out[0].data);
  a.n_rows = b.out[0].n_rows;
}

}  // namespace

Status validate(const Args& a) {
  if (!has_codec(a.table_type))
    return error(Code::unsupported, "embedding: a table of {}", name_of(a.table_type));
  const int block = format_of(a.table_type).block_elems;
  if (a.n_rows < 0 || a.n_vocab < 1 || a.n < 1 || a.n % block != 0)
    return error(Code::invalid_argument,
                 "embedding: {} rows of {} from a table of {} rows of {} (rows >= 0, vocabulary >= "
                 "1, n a multiple of {})",
                 a.n_rows, a.n, a.n_vocab, name_of(a.table_type), block);
  if (!(a.scale > 0 && a.scale < std::numeric_limits<float>::infinity()))
    return error(Code::invalid_argument, "embedding: scale {} (above 0; 1 for none)", a.scale);
  return {};
}

std::span<const Variant> variants() {
  return kVariants;
}

const Op kOp = {.name = "embedding",
                .variants = variants,
                .cases = cases,
                .validate = erase_validate<Args, validate>,
                .key = erase_key<Args, key>,
                .floor = erase_floor<Args, floor_of>,
                .splits = {.by_rows = true},
                .bind = erase_bind<Args, bind>};

}  // namespace millrace::embedding
