#include "model/weights.h"

#include <algorithm>
#include <utility>

#include "kernels/matmul/op.h"
#include "tensor/codec.h"
#include "tensor/format.h"

namespace millrace {
namespace {

// Untouched memory of an arena costs nothing; a matrix larger than this gets one of its own.
constexpr size_t kArenaBytes = size_t{64} << 20;
constexpr size_t kAlign = 64;
// About how much of the file is packed before its pages are given back: what a load holds twice.
constexpr size_t kSlabBytes = size_t{8} << 20;

std::string shape_text(const std::vector<int64_t>& shape) {
  return fmt::format("[{}]", fmt::join(shape, ", "));
}

matmul::Args args_of(const Linear& linear, int64_t n_rows) {
  return {.w = linear.data,
          .x = nullptr,
          .y = nullptr,
          .n_rows = n_rows,
          .n = linear.n,
          .k = linear.k,
          .w_type = linear.type,
          .x_type = linear.input_type(),
          .y_type = DType::f32};
}

bool is_weight_type(DType type) {
  return type == DType::f32 || type == DType::f16 || type == DType::bf16 ||
         (is_block_format(type) && type != DType::q8_row);
}

// Rows [begin, end) of a matrix, whole grains of the layout.
void pack_rows(const Layout& layout, const Linear& plain, Share rows, std::byte* packed) {
  if (rows.begin >= rows.end) return;
  Linear before = plain, mine = plain;
  before.n = rows.begin;
  mine.n = rows.end - rows.begin;
  const matmul::Args before_args = args_of(before, 1), my_args = args_of(mine, 1);
  const size_t skip = rows.begin == 0 ? 0 : layout.bytes(&before_args);
  const size_t row_bytes = bytes_of(plain.type, plain.k);
  layout.pack(
      &my_args,
      static_cast<const std::byte*>(plain.data) + static_cast<size_t>(rows.begin) * row_bytes,
      packed + skip);
}

// Slab by slab, each by all lanes, so that the file's pages do not stay beside the packed bytes.
void pack_on(Team& team, const Layout& layout, const Linear& plain, std::byte* packed,
             const ModelFile& file) {
  const size_t row_bytes = bytes_of(plain.type, plain.k);
  const int64_t grain = layout.row_grain;
  const int64_t wanted = static_cast<int64_t>(kSlabBytes / row_bytes) / grain * grain;
  const int64_t slab_rows = std::max(wanted, grain);
  for (int64_t begin = 0; begin < plain.n; begin += slab_rows) {
    const int64_t n = std::min(slab_rows, plain.n - begin);
    team.run([&](Lane& lane) {
      const Share share = share_of(n, lane.index, lane.count, grain);
      pack_rows(layout, plain, {begin + share.begin, begin + share.end}, packed);
    });
    file.drop({static_cast<const std::byte*>(plain.data) + static_cast<size_t>(begin) * row_bytes,
               static_cast<size_t>(n) * row_bytes});
  }
}

// Of the variant that will read the matrix; null where it reads it as in the file.
Result<const Layout*> layout_for(const Linear& plain, const PickFrom& from) {
  const matmul::Args args = args_of(plain, 1);
  MILLRACE_TRY(matmul::validate(args));
  MILLRACE_ASSIGN(const Choice choice, pick(matmul::kOp, &args, from));
  return layout_named(matmul::kOp, choice.variant->layout);
}

}  // namespace

DType Linear::input_type() const {
  return is_block_format(type) ? DType::q8_row : DType::f32;
}

Weights::Weights(const ModelFile& file, Team& team, const PickFrom& from, LoadProgress progress)
    : file_(file), team_(team), from_(from), progress_(std::move(progress)) {}

Result<const TensorView*> Weights::tensor(const std::string& name,
                                          std::vector<int64_t> shape) const {
  const TensorView* found = file_.find(name);
  if (found == nullptr)
    return error(Code::corrupt, "{}: there is no tensor {}", file_.path(), name);
  if (found->shape != shape)
    return error(Code::corrupt, "{}: tensor {} has the shape {}, and {} is needed", file_.path(),
                 name, shape_text(found->shape), shape_text(shape));
  if (!is_weight_type(found->type))
    return error(Code::unsupported, "{}: tensor {} holds {}", file_.path(), name,
                 name_of(found->type));
  return found;
}

Result<std::byte*> Weights::allocate(size_t bytes) {
  bytes = (bytes + kAlign - 1) / kAlign * kAlign;
  if (arenas_.empty() || arena_used_ + bytes > arenas_.back().bytes()) {
    MILLRACE_ASSIGN(HostBuffer arena, HostBuffer::make(std::max(bytes, kArenaBytes)));
    arenas_.push_back(std::move(arena));
    arena_used_ = 0;
  }
  std::byte* out = arenas_.back().data() + arena_used_;
  arena_used_ += bytes;
  packed_bytes_ += bytes;
  return out;
}

void Weights::ready(size_t bytes) {
  done_bytes_ += bytes;
  if (progress_) progress_(std::min(done_bytes_, file_.file_bytes()), file_.file_bytes());
}

// `parts` follow each other in the packed matrix; of one part, `plain` is it.
Result<Linear> Weights::pack(const std::string& key, const Linear& plain,
                             const std::vector<const TensorView*>& parts) {
  const matmul::Args args = args_of(plain, 1);
  MILLRACE_ASSIGN(const Layout* layout, layout_for(plain, from_));
  Linear out = plain;
  out.layout = layout == nullptr ? "plain" : layout->name;
  if (layout == nullptr && parts.size() > 1)
    return error(Code::unsupported, "{}: {} would be read as in the file, which has it in parts",
                 file_.path(), key);
  if (layout != nullptr) {
    MILLRACE_ASSIGN(std::byte * packed, allocate(layout->bytes(&args)));
    const size_t part_bytes = layout->bytes(&args) / parts.size();
    Linear part = plain;
    part.n = plain.n / static_cast<int64_t>(parts.size());
    for (size_t i = 0; i < parts.size(); ++i) {
      part.data = parts[i]->data;
      pack_on(team_, *layout, part, packed + i * part_bytes, file_);
    }
    out.data = packed;
  }
  for (const TensorView* part : parts) ready(part->bytes);
  return linears_.emplace(key, out).first->second;
}

Result<Linear> Weights::linear(const std::string& name, int64_t n, int64_t k) {
  if (const auto found = linears_.find(name); found != linears_.end()) return found->second;
  MILLRACE_ASSIGN(const TensorView* view, tensor(name, {n, k}));
  return pack(name, {view->data, n, k, view->type, {}}, {view});
}

Result<Linear> Weights::experts(const std::string& stem, int64_t n_experts, int64_t n, int64_t k) {
  const std::string name = stem + ".weight";
  if (const auto found = linears_.find(name); found != linears_.end()) return found->second;
  std::vector<const TensorView*> parts;
  if (has(name)) {
    MILLRACE_ASSIGN(const TensorView* stack, tensor(name, {n_experts, n, k}));
    parts.push_back(stack);
  } else {
    for (int64_t e = 0; e < n_experts; ++e) {
      MILLRACE_ASSIGN(const TensorView* part, tensor(fmt::format("{}.{}.weight", stem, e), {n, k}));
      if (e > 0 && part->type != parts[0]->type)
        return error(Code::unsupported, "{}: the experts of {} are not all of one type",
                     file_.path(), stem);
      parts.push_back(part);
    }
  }
  const Linear plain = {parts[0]->data, n_experts * n, k, parts[0]->type, {}};
  MILLRACE_ASSIGN(const Layout* layout, layout_for(plain, from_));
  if (layout != nullptr && n % layout->row_grain != 0)
    return error(Code::unsupported, "{}: experts of {} outputs, not a multiple of {}", file_.path(),
                 n, layout->row_grain);
  const size_t others = packed_bytes_;
  auto stack = pack(name, plain, parts);
  expert_bytes_ += packed_bytes_ - others;
  return stack;
}

Result<const float*> Weights::vector(const std::string& name, int64_t n) {
  if (const auto found = vectors_.find(name); found != vectors_.end()) return found->second;
  MILLRACE_ASSIGN(const TensorView* view, tensor(name, {n}));
  MILLRACE_ASSIGN(std::byte * bytes, allocate(static_cast<size_t>(n) * sizeof(float)));
  auto* values = reinterpret_cast<float*>(bytes);
  decode(view->type, view->data, values, n);
  ready(view->bytes);
  return vectors_.emplace(name, values).first->second;
}

Result<Table> Weights::table(const std::string& name, int64_t n_rows, int64_t k) const {
  MILLRACE_ASSIGN(const TensorView* view, tensor(name, {n_rows, k}));
  return Table{view->data, view->type};
}

}  // namespace millrace
