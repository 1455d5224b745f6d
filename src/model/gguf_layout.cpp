#include "model/gguf_layout.h"

#include <charconv>

#include "base/utf8.h"
#include "model/architecture.h"
#include "model/config.h"
#include "tensor/codec.h"
#include "tensor/format.h"

namespace millrace {
namespace {

// Row r of a head in GGUF's order is this one in Hugging Face's, where pair i is rows i and
// i + rot_dim / 2.
int64_t row_in_halves(int64_t r, int64_t rot_dim) {
  return r >= rot_dim ? r : r / 2 + (r % 2) * (rot_dim / 2);
}

LaidOut as_it_is(const TensorView& tensor) {
  return {.name = std::string(tensor.name),
          .type = tensor.type,
          .shape = tensor.shape,
          .parts = {&tensor}};
}

class Layouter {
 public:
  Layouter(const ModelFile& file, const Config& config) : file_(file), config_(config) {}

  Result<std::vector<LaidOut>> run() {
    for (const TensorView& tensor : file_.tensors()) MILLRACE_TRY(add(tensor));
    if (config_.llama3.original_context > 0)
      out_.push_back({.name = "rope_freqs.weight",
                      .shape = {config_.rot_dim / 2},
                      .values = llama3_factors(config_)});
    return std::move(out_);
  }

 private:
  Status wrong(const TensorView& tensor, std::string_view why) const {
    return error(Code::unsupported, "{}: tensor '{}' {}", printable(file_.path()),
                 printable(tensor.name, 200), why);
  }

  Status add(const TensorView& tensor) {
    const std::string_view name = tensor.name;
    // What older checkpoints store beside the base it is computed from.
    if (name.ends_with(".rotary_emb.inv_freq")) return {};
    if (!name.starts_with("blk.") && !name.starts_with("token_embd.") &&
        !name.starts_with("output"))
      return wrong(tensor, "is none that its architecture has");
    if (tensor.shape.empty() || tensor.bytes == 0) return wrong(tensor, "is empty");
    if (const size_t experts = name.find("_exps."); experts != name.npos)
      return add_expert(tensor, experts + std::string_view("_exps").size());
    const bool rotates = name.find(".attn_q.") != name.npos || name.find(".attn_k.") != name.npos;
    if (!rotates || !config_.architecture->pairs_neighbours) {
      config_.norm_plus != 0 && tensor.shape.size() == 1 ? add_norm(tensor)
                                                         : out_.push_back(as_it_is(tensor));
      return {};
    }
    if (tensor.shape.size() > 2 || tensor.shape[0] % config_.head_dim != 0)
      return wrong(tensor, "has no whole heads");
    tensor.shape.size() == 2 ? add_heads(tensor) : add_bias(tensor);
    return {};
  }

  void add_heads(const TensorView& tensor) {
    out_.push_back(as_it_is(tensor));
    out_.back().head_dim = config_.head_dim;
    out_.back().rot_dim = config_.rot_dim;
  }

  // As GGUF has it: whole.
  void add_norm(const TensorView& tensor) {
    std::vector<float> values(static_cast<size_t>(tensor.shape[0]));
    decode(tensor.type, tensor.data, values.data(), tensor.shape[0]);
    for (float& value : values) value += config_.norm_plus;
    out_.push_back(
        {.name = std::string(tensor.name), .shape = tensor.shape, .values = std::move(values)});
  }

  void add_bias(const TensorView& tensor) {
    const int64_t n = tensor.shape[0], head_dim = config_.head_dim;
    std::vector<float> halves(static_cast<size_t>(n)), pairs;
    decode(tensor.type, tensor.data, halves.data(), n);
    for (int64_t i = 0; i < n; ++i) {
      const int64_t from = i / head_dim * head_dim + row_in_halves(i % head_dim, config_.rot_dim);
      pairs.push_back(halves[static_cast<size_t>(from)]);
    }
    out_.push_back({.name = std::string(tensor.name), .shape = {n}, .values = std::move(pairs)});
  }

  // blk.0.ffn_up_exps.7.weight, where `dot` is that before the 7: the first of a stack finds the
  // others.
  Status add_expert(const TensorView& tensor, size_t dot) {
    const std::string stem(tensor.name.substr(0, dot));
    if (tensor.name.substr(dot) != ".0.weight") return check_expert(tensor, stem);
    LaidOut stack{.name = stem + ".weight", .type = tensor.type, .shape = tensor.shape};
    stack.shape.insert(stack.shape.begin(), config_.n_experts);
    for (int64_t e = 0; e < config_.n_experts; ++e) {
      const TensorView* part = file_.find(fmt::format("{}.{}.weight", stem, e));
      if (part == nullptr || part->shape != tensor.shape || part->type != tensor.type)
        return wrong(tensor, fmt::format("has no expert {} of its type and shape beside it", e));
      stack.parts.push_back(part);
    }
    out_.push_back(std::move(stack));
    return {};
  }

  Status check_expert(const TensorView& tensor, const std::string& stem) const {
    const std::string_view rest = tensor.name.substr(stem.size() + 1);
    int64_t expert = -1;
    (void)std::from_chars(rest.data(), rest.data() + rest.size(), expert);
    if (expert > 0 && expert < config_.n_experts) return {};
    return wrong(tensor, fmt::format("is none of {} experts", config_.n_experts));
  }

  const ModelFile& file_;
  const Config& config_;
  std::vector<LaidOut> out_;
};

}  // namespace

size_t LaidOut::bytes() const {
  size_t sum = values.size() * sizeof(float);
  for (const TensorView* part : parts) sum += part->bytes;
  return sum;
}

const std::byte* LaidOut::row(int64_t r) const {
  if (parts.empty()) return reinterpret_cast<const std::byte*>(values.data());
  if (rot_dim > 0) r = r / head_dim * head_dim + row_in_halves(r % head_dim, rot_dim);
  const size_t row_bytes = bytes_of(type, shape.back());
  const auto rows_each = static_cast<int64_t>(parts[0]->bytes / row_bytes);
  const auto at = static_cast<size_t>(r % rows_each) * row_bytes;
  return parts[static_cast<size_t>(r / rows_each)]->data + at;
}

Result<std::vector<LaidOut>> lay_out(const ModelFile& file) {
  if (file.safetensors() == nullptr) {
    std::vector<LaidOut> out;
    for (const TensorView& tensor : file.tensors()) out.push_back(as_it_is(tensor));
    return out;
  }
  MILLRACE_ASSIGN(const Config config, read_config(file));
  return Layouter(file, config).run();
}

}  // namespace millrace
