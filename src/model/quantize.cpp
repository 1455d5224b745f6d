#include "model/quantize.h"

#include <cstring>
#include <vector>

#include "base/utf8.h"
#include "files/gguf.h"
#include "files/safetensors.h"
#include "model/config.h"
#include "model/config_gguf.h"
#include "model/gguf_layout.h"
#include "tensor/codec.h"
#include "tensor/format.h"
#include "text/tokenizer/vocab.h"

namespace millrace {
namespace {

bool can_convert(DType type) {
  return is_block_format(type) || type == DType::f32 || type == DType::f16 || type == DType::bf16;
}

QuantModel describe(const ModelFile& in) {
  QuantModel model;
  model.has_output = in.find("output.weight") != nullptr;
  if (const auto config = read_config(in); config.ok()) {
    model.n_layers = config.value().n_layers;
    model.n_gqa = config.value().n_heads / config.value().n_kv_heads;
    return model;
  }
  // A GGUF of an architecture that does not run here can be quantised all the same.
  const auto architecture = in.gguf()->string("general.architecture");
  if (!architecture.ok()) return model;
  const auto key = fmt::format("{}.block_count", architecture.value());
  const auto n_layers = in.gguf()->integer_or(key, 0);
  if (n_layers.ok()) model.n_layers = n_layers.value();
  return model;
}

DType type_of(const LaidOut& tensor, const QuantType& type, const QuantModel& model) {
  if (is_quantised(tensor.name, tensor.shape))
    return quantised_type(type, model, tensor.name, tensor.shape);
  // What is small stays exact, and other readers want it in f32.
  const bool is_float = tensor.type == DType::f16 || tensor.type == DType::bf16;
  return is_float ? DType::f32 : tensor.type;
}

class Quantizer {
 public:
  Quantizer(const ModelFile& in, const QuantType& type) : in_(in), type_(type) {}

  Result<QuantizeReport> run(const std::string& out, const StreamOptions& options) {
    MILLRACE_TRY(check());
    MILLRACE_ASSIGN(tensors_, lay_out(in_));
    if (in_.gguf() != nullptr)
      copy_metadata();
    else
      MILLRACE_TRY(write_metadata());
    writer_.add_u32("general.quantization_version", 2);
    writer_.add_u32("general.file_type", type_.file_type);
    plan_tensors();
    MILLRACE_TRY(writer_.begin(out));
    MILLRACE_TRY(stream_tensors(
        writer_, [&](const RowRange& rows, std::byte* bytes) { fill(rows, bytes); }, options,
        [&](size_t i) {
          for (const TensorView* part : tensors_[i].parts) in_.drop({part->data, part->bytes});
        }));
    MILLRACE_TRY(in_.check());
    MILLRACE_TRY(writer_.finish());
    return report_;
  }

 private:
  Status check() const {
    if (in_.gguf() == nullptr) return {};
    for (const GgufTensor& tensor : in_.gguf()->tensors()) {
      const auto type = dtype_of_gguf(tensor.type_id);
      if (!type || (!can_convert(*type) && is_quantised(tensor.name, tensor.shape)))
        return error(Code::unsupported, "{}: tensor '{}' is {}, which cannot be converted",
                     printable(in_.path()), tensor.name, gguf_tensor_type_name(tensor.type_id));
    }
    return {};
  }

  void copy_metadata() {
    for (const GgufValue& value : in_.gguf()->values())
      if (value.key != "general.file_type" && value.key != "general.quantization_version" &&
          value.key != "general.alignment" && !value.key.starts_with("split."))
        writer_.add(value);
    report_.has_tokenizer = in_.gguf()->find("tokenizer.ggml.model") != nullptr;
  }

  // Of a directory.
  Status write_metadata() {
    MILLRACE_ASSIGN(const Config config, read_config(in_));
    write_config(config, writer_);
    report_.has_tokenizer = in_.safetensors()->has("tokenizer.json");
    if (report_.has_tokenizer) {
      MILLRACE_ASSIGN(const Vocab vocab, load_vocab(in_));
      const Status status = write_vocab(vocab, config.n_vocab, writer_);
      if (!status.ok())
        return error(status.code(), "{}: {}", printable(in_.path()), status.message());
    }
    const std::string text = in_.chat_template();
    if (!text.empty()) writer_.add_string("tokenizer.chat_template", text);
    return {};
  }

  void plan_tensors() {
    const QuantModel model = describe(in_);
    for (const LaidOut& tensor : tensors_) {
      const DType type = type_of(tensor, type_, model);
      writer_.add_tensor({tensor.name, type, tensor.shape});
      report_.bytes_in += tensor.bytes();
      report_.bytes_out += writer_.tensors().back().bytes();
      ++report_.n_tensors[type];
      if (type == tensor.type || !is_quantised(tensor.name, tensor.shape)) continue;
      if (is_block_format(tensor.type)) ++report_.n_requantised;
      const int block = format_of(type_.base).block_elems;
      if (tensor.shape.back() % block != 0) ++report_.n_fallbacks;
    }
  }

  void fill(const RowRange& rows, std::byte* out) const {
    const LaidOut& from = tensors_[rows.tensor];
    const TensorPlan& to = writer_.tensors()[rows.tensor];
    const int64_t k = to.shape.back();
    std::vector<float> row(static_cast<size_t>(k));
    for (int64_t r = rows.first; r < rows.first + rows.n; ++r, out += to.row_bytes()) {
      if (from.type == to.type) {
        std::memcpy(out, from.row(r), to.row_bytes());
        continue;
      }
      decode(from.type, from.row(r), row.data(), k);
      encode(to.type, row.data(), out, k);
    }
  }

  const ModelFile& in_;
  const QuantType& type_;
  std::vector<LaidOut> tensors_;
  GgufWriter writer_;
  QuantizeReport report_;
};

}  // namespace

Result<QuantizeReport> quantize_model(const ModelFile& in, const std::string& out,
                                      const QuantType& type, const StreamOptions& options) {
  return Quantizer(in, type).run(out, options);
}

}  // namespace millrace
