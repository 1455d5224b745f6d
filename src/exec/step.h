// What one step of a model computes, as data: values and the ops on them, in the order they run.
// An architecture writes it; it holds no pointer, no type and no device. lower.h makes calls of it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "kernels/kernel.h"
#include "kernels/rope/frequencies.h"

namespace millrace {

// What a value is for; a device keeps each kind in one type.
enum class Kind : unsigned char { residual, activation, logits, index };
// How many rows it has, known when a step runs: its tokens, or those whose logits are wanted.
enum class Count : unsigned char { rows, outputs };

// Written by exactly one node, or an input of the step.
struct Value {
  Kind kind = Kind::activation;
  Count count = Count::rows;
  int64_t width = 0;
  int64_t n_each = 1;  // vectors of a row: its experts
};

enum class WeightForm : unsigned char {
  matrix,   // [n][k], for products
  experts,  // [n_experts][n][k]
  table,    // [n_rows][k], to be gathered by rows
  vector,   // f32 [n]
  turns,    // of a rotary embedding, made from its parameters and a tensor of factors if named
};

struct RopeParameters {
  int64_t rot_dim = 0;
  rope::Scaling scaling;
  std::vector<float> factors;

  bool operator==(const RopeParameters&) const = default;
};

struct WeightRef {
  std::string name = {};  // as GGUF has it; may be empty for turns
  WeightForm form = WeightForm::matrix;
  std::vector<int64_t> shape = {};
  float plus = 0;  // added to every element of a vector
  RopeParameters rope = {};

  bool operator==(const WeightRef& o) const {
    return name == o.name && form == o.form && shape == o.shape && plus == o.plus && rope == o.rope;
  }
};

struct Node {
  const Op* op = nullptr;
  std::vector<int> in = {}, out = {}, weights = {};  // places in the lists of StepSpec
  ArgsBox attrs = {};  // the op's Args without addresses, types and rows
  int layer = -1;      // whose pages it reads or writes; -1: none
};

// The inputs of every step are its first values: of each row the token, its position and its
// sequence; and which rows' logits are wanted.
enum StepInput : int { kTokens, kPositions, kSequences, kWantedRows, kStepInputs };

struct StepSpec {
  StepSpec();
  std::vector<Value> values;
  std::vector<Node> nodes;
  std::vector<WeightRef> weights;
  int logits = -1;

  // Whether the node reads or writes the rows whose logits are wanted, not all rows.
  Count count_of(const Node& node) const;
};

// One line a node: "3 matmul v5 <- v4 * blk.0.attn_q.weight".
std::string describe(const StepSpec& spec);

}  // namespace millrace
