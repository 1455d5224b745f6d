#include "model/weights.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>
#include <utility>

#include "base/hash.h"
#include "base/small_float.h"
#include "kernels/matmul/op.h"
#include "tensor/codec.h"
#include "tensor/format.h"

namespace millrace {
namespace {

// Untouched memory of an arena costs nothing; a matrix larger than this gets one of its own.
constexpr size_t kArenaBytes = size_t{64} << 20;
constexpr size_t kAlign = 64;
// Rows that are hashed together, whatever the layout and the number of lanes.
constexpr int64_t kHashRows = 32;
// About how much of the file is packed before its pages are given back: what a load holds twice.
constexpr size_t kSlabBytes = size_t{8} << 20;

std::string shape_text(const std::vector<int64_t>& shape) {
  return fmt::format("[{}]", fmt::join(shape, ", "));
}

Result<const TensorView*> tensor(const ModelFile& file, const std::string& name,
                                 const std::vector<int64_t>& shape) {
  const TensorView* found = file.find(name);
  if (found == nullptr) return error(Code::corrupt, "{}: tensor {} is missing", file.path(), name);
  if (found->shape != shape)
    return error(Code::corrupt, "{}: tensor {} has the shape {} and should have {}", file.path(),
                 name, shape_text(found->shape), shape_text(shape));
  if (!is_weight_format(found->type))
    return error(Code::unsupported, "{}: tensor {} holds {}", file.path(), name,
                 name_of(found->type));
  return found;
}

// The experts {n_experts, n, k} from STEM.weight, or from the tensors STEM.0.weight, STEM.1.weight,
// ... that a directory has.
Result<std::vector<const TensorView*>> expert_parts(const ModelFile& file, const WeightRef& ref) {
  std::vector<const TensorView*> parts;
  if (file.find(ref.name) != nullptr) {
    MILLRACE_ASSIGN(const TensorView* stack, tensor(file, ref.name, ref.shape));
    return std::vector{stack};
  }
  const std::string stem = ref.name.substr(0, ref.name.size() - std::string_view(".weight").size());
  for (int64_t e = 0; e < ref.shape[0]; ++e) {
    MILLRACE_ASSIGN(const TensorView* part, tensor(file, fmt::format("{}.{}.weight", stem, e),
                                                   {ref.shape[1], ref.shape[2]}));
    if (e > 0 && part->type != parts[0]->type)
      return error(Code::unsupported, "{}: the experts of {} are not all of one type", file.path(),
                   stem);
    parts.push_back(part);
  }
  return parts;
}

Result<std::vector<const TensorView*>> parts_of(const ModelFile& file, const WeightRef& ref) {
  if (ref.form == WeightForm::experts) return expert_parts(file, ref);
  MILLRACE_ASSIGN(const TensorView* view, tensor(file, ref.name, ref.shape));
  return std::vector{view};
}

matmul::Args args_of(DType type, int64_t n, int64_t k, bool on_cuda) {
  matmul::Args a{};
  a.n_rows = 1;
  a.n = n;
  a.k = k;
  a.w_type = type;
  a.x_type = matmul::input_type(type, on_cuda);
  a.y_type = DType::f32;
  return a;
}

// Rows of a tensor decoded and rounded once to bf16, where the device wants them so.
struct Converted {
  std::vector<float> values;
  std::vector<uint16_t> rounded;
  const std::byte* run(DType type, const std::byte* rows, int64_t elems) {
    values.resize(static_cast<size_t>(elems));
    rounded.resize(static_cast<size_t>(elems));
    decode(type, rows, values.data(), elems);
    for (size_t i = 0; i < values.size(); ++i) rounded[i] = f32_to_bf16(values[i]);
    return reinterpret_cast<const std::byte*>(rounded.data());
  }
};

// What a lane packs: rows [begin, end) of a matrix [n][k], whole grains of its layout.
struct Packing {
  const Layout* layout;  // null: the rows as they are
  DType from, to;
  int64_t k;
  bool on_cuda;

  size_t bytes(int64_t n) const {
    if (n == 0) return 0;
    if (layout == nullptr) return bytes_of(to, n * k);
    const matmul::Args a = args_of(to, n, k, on_cuda);
    return layout->bytes(&a);
  }
  void rows(const std::byte* plain, int64_t n, std::byte* out, Converted& scratch) const {
    const std::byte* from_rows = from == to ? plain : scratch.run(from, plain, n * k);
    if (layout == nullptr) {
      std::copy_n(from_rows, bytes_of(to, n * k), out);
      return;
    }
    const matmul::Args a = args_of(to, n, k, on_cuda);
    layout->pack(&a, from_rows, out);
  }
};

uint64_t hash_of(const std::vector<uint64_t>& parts) {
  return hash64(std::as_bytes(std::span(parts)));
}

// Packs slab by slab, each by all lanes, so that the file's pages do not stay beside the packed
// bytes, and hashes every run of rows by itself, so that the hash does not depend on the lanes.
class Packer {
 public:
  Packer(Team& team, const ModelFile& file, const Packing& packing)
      : team_(team),
        file_(file),
        packing_(packing),
        row_bytes_(bytes_of(packing.from, packing.k)),
        run_rows_(std::lcm(kHashRows, packing.layout == nullptr ? 1 : packing.layout->row_grain)),
        scratch_(static_cast<size_t>(team.size())) {}

  // n rows at `plain` into `packed`, or nowhere; returns their hash.
  uint64_t run(const std::byte* plain, int64_t n, std::byte* packed) {
    const int64_t wanted = static_cast<int64_t>(kSlabBytes / row_bytes_) / run_rows_ * run_rows_;
    const int64_t slab_rows = std::max(wanted, run_rows_);
    hashes_.assign(static_cast<size_t>((n + kHashRows - 1) / kHashRows), 0);
    for (int64_t begin = 0; begin < n; begin += slab_rows) {
      const int64_t rows = std::min(slab_rows, n - begin);
      team_.run([&](Lane& lane) {
        const Share share = share_of(rows, lane.index, lane.count, run_rows_);
        for (int64_t r = begin + share.begin; r < begin + share.end; r += run_rows_)
          pack_run(plain, {r, std::min(r + run_rows_, begin + share.end)}, packed, lane.index);
      });
      file_.drop({plain + static_cast<size_t>(begin) * row_bytes_,
                  static_cast<size_t>(rows) * row_bytes_});
    }
    return hash_of(hashes_);
  }

 private:
  void pack_run(const std::byte* plain, Share rows, std::byte* packed, int lane) {
    const auto at = [&](int64_t r) { return plain + static_cast<size_t>(r) * row_bytes_; };
    for (int64_t r = rows.begin; r < rows.end; r += kHashRows) {
      const int64_t n = std::min(kHashRows, rows.end - r);
      hashes_[static_cast<size_t>(r / kHashRows)] =
          hash64({at(r), static_cast<size_t>(n) * row_bytes_});
    }
    if (packed != nullptr)
      packing_.rows(at(rows.begin), rows.end - rows.begin, packed + packing_.bytes(rows.begin),
                    scratch_[static_cast<size_t>(lane)]);
  }

  Team& team_;
  const ModelFile& file_;
  const Packing& packing_;
  const size_t row_bytes_;
  const int64_t run_rows_;
  std::vector<Converted> scratch_;
  std::vector<uint64_t> hashes_;
};

// A file's own factors of the frequencies; null where the configuration says them, or nobody does.
const TensorView* factors_in(const ModelFile& file, const WeightRef& ref) {
  return ref.name.empty() || !ref.rope.factors.empty() ? nullptr : file.find(ref.name);
}

Result<rope::Frequencies> frequencies_of(const ModelFile& file, const WeightRef& ref) {
  std::vector<float> factors = ref.rope.factors;
  if (!ref.name.empty() && factors.empty()) {
    MILLRACE_ASSIGN(const TensorView* view, tensor(file, ref.name, {ref.rope.rot_dim / 2}));
    factors.resize(static_cast<size_t>(ref.rope.rot_dim / 2));
    decode(view->type, view->data, factors.data(), ref.rope.rot_dim / 2);
  }
  return rope::make_frequencies(ref.rope.rot_dim, ref.rope.scaling, factors);
}

}  // namespace

Result<std::vector<DType>> weight_types(const StepSpec& spec, const ModelFile& file,
                                        DeviceKind device) {
  std::vector<DType> out;
  for (const WeightRef& ref : spec.weights) {
    if (ref.form == WeightForm::turns) {
      MILLRACE_TRY(frequencies_of(file, ref).status());
      out.push_back(DType::f32);
      continue;
    }
    MILLRACE_ASSIGN(const auto parts, parts_of(file, ref));
    DType type = parts[0]->type;
    if (ref.form == WeightForm::vector) type = DType::f32;
    if (ref.form != WeightForm::vector && device == DeviceKind::cuda)
      type = ref.form == WeightForm::matrix ? matmul::device_weight_type(type) : DType::bf16;
    out.push_back(type);
  }
  return out;
}

struct Weights::Source {
  std::vector<const TensorView*> parts;
};

Weights::Weights(const ModelFile& file, Device& device, Team& team, LoadProgress progress)
    : file_(file), device_(device), team_(team), progress_(std::move(progress)) {}

Result<std::byte*> Weights::allocate(size_t bytes) {
  bytes = (bytes + kAlign - 1) / kAlign * kAlign;
  if (arenas_.empty() || arena_used_ + bytes > arenas_.back().bytes()) {
    MILLRACE_ASSIGN(DeviceMemory arena,
                    device_.allocate(std::max(bytes, kArenaBytes), Pages::huge));
    arenas_.push_back(std::move(arena));
    arena_used_ = 0;
  }
  std::byte* out = arenas_.back().data() + arena_used_;
  arena_used_ += bytes;
  bytes_ += bytes;
  return out;
}

void Weights::ready(const TensorView& tensor, uint64_t hash) {
  if (!hashes_.emplace(tensor.name, hash).second) return;
  done_bytes_ += tensor.bytes;
  if (progress_) progress_(std::min(done_bytes_, file_.file_bytes()), file_.file_bytes());
}

Result<BoundWeight> Weights::put(const void* bytes, size_t n, DType type) {
  MILLRACE_ASSIGN(std::byte * to, allocate(n));
  MILLRACE_TRY(device_.upload(to, bytes, n));
  return BoundWeight{to, type};
}

Result<BoundWeight> Weights::load_matrix(const WeightRef& ref, const Source& source,
                                         std::string_view layout_name, DType type) {
  const bool on_cuda = device_.kind() == DeviceKind::cuda;
  const Layout* layout = layout_named(matmul::kOp, layout_name);
  const int64_t k = ref.shape.back();
  const int64_t n_each = ref.shape[ref.shape.size() - 2];
  const int64_t n = ref.form == WeightForm::experts ? ref.shape[0] * n_each : n_each;
  if (layout != nullptr && ref.form == WeightForm::experts && n_each % layout->row_grain != 0)
    return error(Code::unsupported, "{}: experts of {} outputs, not a multiple of {}", file_.path(),
                 n_each, layout->row_grain);
  const Packing packing{layout, source.parts[0]->type, type, k, on_cuda};
  Packer packer(team_, file_, packing);
  const size_t part_bytes = packing.bytes(n) / source.parts.size();
  // Read where the file has it.
  const bool stays = layout == nullptr && source.parts.size() == 1 && !on_cuda;
  if (stays) {
    if (!hashes_.contains(ref.name))
      ready(*source.parts[0], packer.run(source.parts[0]->data, n, nullptr));
    return BoundWeight{source.parts[0]->data, type};
  }
  MILLRACE_ASSIGN(std::byte * to, allocate(packing.bytes(n)));
  HostBuffer staged;
  if (on_cuda) {
    MILLRACE_ASSIGN(staged, HostBuffer::make(part_bytes));
  }
  for (size_t i = 0; i < source.parts.size(); ++i) {
    std::byte* part = to + i * part_bytes;
    const int64_t rows = n / static_cast<int64_t>(source.parts.size());
    const uint64_t hash = packer.run(source.parts[i]->data, rows, on_cuda ? staged.data() : part);
    if (on_cuda) {
      MILLRACE_TRY(device_.upload(part, staged.data(), part_bytes));
      MILLRACE_TRY(device_.wait());
    }
    ready(*source.parts[i], hash);
  }
  return BoundWeight{to, type};
}

// Gathered row by row: on a CPU from the file itself.
Result<BoundWeight> Weights::load_table(const WeightRef& ref, DType type) {
  MILLRACE_ASSIGN(const auto parts, parts_of(file_, ref));
  const size_t before = bytes_;
  auto loaded = load_matrix(ref, {parts}, "plain", type);
  table_bytes_ += bytes_ - before;
  return loaded;
}

Result<BoundWeight> Weights::load_vector(const WeightRef& ref) {
  MILLRACE_ASSIGN(const TensorView* view, tensor(file_, ref.name, ref.shape));
  std::vector<float> values(static_cast<size_t>(ref.shape[0]));
  decode(view->type, view->data, values.data(), ref.shape[0]);
  if (ref.plus != 0)
    for (float& value : values) value += ref.plus;
  ready(*view, hash64({view->data, view->bytes}));
  return put(values.data(), values.size() * sizeof(float), DType::f32);
}

Result<BoundWeight> Weights::load_turns(const WeightRef& ref) {
  MILLRACE_ASSIGN(const rope::Frequencies frequencies, frequencies_of(file_, ref));
  if (const TensorView* view = factors_in(file_, ref))
    ready(*view, hash64({view->data, view->bytes}));
  return put(frequencies.turns.data(), frequencies.turns.size() * sizeof(frequencies.turns[0]),
             DType::f32);
}

Result<BoundWeight> Weights::load_one(const WeightRef& ref, std::string_view layout, DType type) {
  switch (ref.form) {
    case WeightForm::vector:
      return load_vector(ref);
    case WeightForm::turns:
      return load_turns(ref);
    case WeightForm::table:
      return load_table(ref, type);
    case WeightForm::matrix:
    case WeightForm::experts:
      break;
  }
  MILLRACE_ASSIGN(const auto parts, parts_of(file_, ref));
  const size_t before = bytes_;
  auto loaded = load_matrix(ref, {parts}, layout, type);
  if (ref.form == WeightForm::experts) expert_bytes_ += bytes_ - before;
  return loaded;
}

Status Weights::load(const StepSpec& spec, const Lowered& lowered, std::span<const DType> types) {
  bound_.resize(spec.weights.size());
  // Tables last: what is also a matrix has been hashed by then.
  for (const bool tables : {false, true})
    for (size_t i = 0; i < spec.weights.size(); ++i) {
      if ((spec.weights[i].form == WeightForm::table) != tables) continue;
      MILLRACE_ASSIGN(bound_[i], load_one(spec.weights[i], lowered.weight_layouts[i], types[i]));
      MILLRACE_TRY(file_.check());
    }
  return {};
}

std::string Weights::hash() const {
  std::string all;
  for (const auto& [name, hash] : hashes_) {
    const TensorView* view = file_.find(name);
    all +=
        fmt::format("{}:{}:{}:{:016x};", name, name_of(view->type), shape_text(view->shape), hash);
  }
  return hash128(all);
}

}  // namespace millrace
