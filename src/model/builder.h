// What an architecture's file is written in: each call appends one kernel, with its variant picked
// and its args bound, to the Program of a step of n rows. Weights are named as in the file, without
// ".weight". The first failure is kept and ends all further building: ask status() at the end.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "base/status.h"
#include "exec/program.h"
#include "kernels/pick.h"
#include "kernels/rope/frequencies.h"
#include "model/config.h"
#include "model/step.h"
#include "model/weights.h"

namespace millrace {

// Activations of a step, f32 [n_rows][n_each][width], and the same in int8 once a product asked for
// them.
struct Rows {
  float* data = nullptr;
  int64_t width = 0;
  int64_t n_each = 1;  // one a row, or one for each of its experts
  void* q8 = nullptr;
};

// Named buffers of activations that all Programs of a model share, each as wide as first asked.
class Scratch {
 public:
  explicit Scratch(int64_t max_rows) : max_rows_(max_rows) {}
  Result<std::byte*> rows(const std::string& name, size_t row_bytes);

 private:
  struct Buffer {
    HostBuffer memory;
    size_t row_bytes;
  };
  const int64_t max_rows_;
  std::map<std::string, Buffer> buffers_;
};

class Builder {
 public:
  struct Parts {
    const Config& config;
    Weights& weights;
    const Step& step;
    Scratch& scratch;
    const rope::Frequencies& frequencies;
    PickFrom from;
  };
  Builder(const Parts& parts, int64_t n_rows, int64_t n_outputs);

  const Config& config() const { return parts_.config; }
  bool has(const std::string& name) const { return parts_.weights.has(name + ".weight"); }
  Status status() const { return status_; }
  Program take_program() { return std::move(program_); }

  // The rows' tokens.
  Rows embed(const std::string& name);
  // Of the whole row, into a buffer of that name.
  Rows norm(const Rows& x, const std::string& weight, const std::string& into);
  // Of every head by itself, in place.
  void norm_heads(const Rows& x, const std::string& weight);
  Rows linear(Rows& x, const std::string& weight, int64_t n, const std::string& into);
  // linear() calls inside `body` read the same rows and write different ones.
  template <class Body>
  void together(Body&& body) {
    together_ = true;
    body();
    together_ = false;
  }
  // Where the model has one.
  void add_bias(const Rows& x, const std::string& name);
  void need(const std::string& tensor);  // fails where the model has it not
  void rotate(const Rows& x, int64_t n_heads);
  void store_kv(int64_t layer, const Rows& k, const Rows& v);
  Rows attend(int64_t layer, const Rows& q, const std::string& into);
  void silu_mul(const Rows& gate, const Rows& up);  // into gate
  void add(const Rows& x, const Rows& y);           // into x
  // The rows' experts, chosen by `router` among config().n_experts: each is a SwiGLU part.
  Rows experts(Rows& h, const std::string& block, const std::string& into);
  // The wanted rows' logits, from the last layer's rows.
  void output(const Rows& x, const std::string& norm, const std::string& weight);

 private:
  void* buffer(const std::string& name, size_t row_bytes);
  Rows float_rows(const std::string& name, int64_t width);
  const float* vector(const std::string& name, int64_t n);
  void quantize(Rows& x);
  void product(const Linear& weight, Rows& x, float* y);
  struct Choices {
    float* weights;  // [n_rows][n_experts_used]
    int* experts;
  };
  Choices choose_experts(Rows& h, const std::string& block);
  // x: one row a choice, or one for all choices of a row.
  Rows expert_linear(Rows& x, const Choices& choices, const std::string& stem, int64_t n,
                     const std::string& into);
  template <class Args>
  void call(const Op& op, const Args& args, std::string_view layout = {});
  void fail(Status status);

  Parts parts_;
  int64_t n_rows_;  // output() narrows it to n_outputs_
  const int64_t n_outputs_;
  Program program_;
  Status status_;
  bool together_ = false;
};

// The step of one architecture, appended to `b`; each in a file of its own.
void build_llama(Builder& b);
void build_qwen2(Builder& b);
void build_qwen3(Builder& b);
void build_qwen3_moe(Builder& b);

}  // namespace millrace
