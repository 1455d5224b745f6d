#include "cli/model_session.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <numeric>

#include "base/clock.h"
#include "base/progress.h"
#include "cli/commands.h"
#include "cli/context.h"
#include "cli/open_model.h"
#include "cli/profile_file.h"
#include "kernels/matmul/op.h"
#include "machine/find_host.h"
#include "memory/host.h"
#include "model/config.h"
#include "tensor/format.h"

namespace millrace::cli {
namespace {

DType kv_type_of(const ModelOptions& options) {
  if (!options.kv_type.empty()) return *dtype_named(options.kv_type);
  return options.device == "cuda" ? DType::bf16 : DType::f16;
}

int64_t elements_of(const TensorView& tensor) {
  return std::accumulate(tensor.shape.begin(), tensor.shape.end(), int64_t{1}, std::multiplies<>());
}

// As they lie on the device: a GPU has what it does not read packed in bf16.
size_t weight_bytes(const ModelFile& file, const ModelOptions& options) {
  size_t bytes = 0;
  for (const TensorView& tensor : file.tensors())
    bytes += options.device == "cuda"
                 ? bytes_of(matmul::device_weight_type(tensor.type), elements_of(tensor))
                 : tensor.bytes;
  return bytes;
}

size_t available_bytes(const Machine& machine, const ModelOptions& options) {
  return options.device == "cuda" ? machine.gpus.at(0).memory_bytes
                                  : machine.memory_available_bytes;
}

// Where the system grants no more address space than memory, a mapping says so before it is used.
int64_t mappable(int64_t n_ctx, const ContextMemory& memory) {
  const auto maps = [&] {
    const size_t kv_bytes = static_cast<size_t>(n_ctx) * memory.kv_bytes_per_token;
    return HostBuffer::make(kv_bytes + memory.weight_bytes).ok();
  };
  while (n_ctx > 1 && !maps()) n_ctx /= 2;
  return n_ctx;
}

// Layers with a window take the same memory for every context that is longer than it.
ContextMemory context_memory(const ModelOptions& options, const ModelSession::Needs& needs,
                             const Config& config, ContextMemory memory) {
  for (const KvGroup& group : kv_groups(config)) {
    const int64_t bytes = needs.max_seqs * kv_bytes_per_token(config, group, kv_type_of(options));
    if (group.window == 0)
      memory.kv_bytes_per_token += static_cast<size_t>(bytes);
    else
      memory.weight_bytes += static_cast<size_t>(bytes * std::min(group.window, config.n_ctx));
  }
  return memory;
}

int64_t context_of(const ModelOptions& options, const ModelSession::Needs& needs,
                   const ModelFile& file, const Config& config, const Machine& machine) {
  if (options.n_ctx > config.n_ctx && !needs.any_context)
    fmt::print(stderr,
               "millrace: warning: a context of {} tokens is longer than the {} that the model was "
               "trained for; its quality degrades past that length\n",
               options.n_ctx, config.n_ctx);
  if (options.n_ctx > 0) return options.n_ctx;
  if (needs.kv_bytes != 0) return config.n_ctx;
  const ContextMemory memory = context_memory(
      options, needs, config, {available_bytes(machine, options), weight_bytes(file, options)});
  const int64_t fits = default_context(config.n_ctx, memory);
  const int64_t n_ctx = options.device == "cuda" ? fits : mappable(fits, memory);
  if (n_ctx < config.n_ctx)
    fmt::print(stderr,
               "millrace: using a context of {} tokens: the {} that the model was trained for do "
               "not fit in the {} of available memory (-c N sets another length)\n",
               n_ctx, config.n_ctx, size_text(memory.available_bytes));
  return n_ctx;
}

// As it was asked for, or as its file is called.
std::string display_name(const std::string& asked, const ModelFile& file) {
  std::error_code ignored;
  if (!asked.empty() && !std::filesystem::exists(asked, ignored)) return asked;
  const std::filesystem::path path(file.path());
  return path.has_filename() ? path.filename() : path.parent_path().filename();
}

// Outputs of 64 rows stay in the second-level cache between the kernels. Of experts each has some
// of the rows only: with more of them its weights serve more rows (Qwen3-30B-A3B's shapes, four
// layers, prompts of 512: 913 tok/s with 64 rows, 1055 with 128, 1201 with 256, 1218 with 512). A
// server bounds its steps by time (engine/scheduler.h), so it has room for more rows.
int64_t batch_of(const ModelOptions& options, const ModelSession::Needs& needs,
                 const Config& config) {
  if (options.n_batch > 0) return options.n_batch;
  if (options.device == "cuda") return 512;
  return config.n_experts > 0 || needs.max_seqs > 1 ? 256 : 64;
}

// Many requests decode beside a whole batch of prompts.
EngineOptions engine_options(const ModelOptions& options, const ModelSession::Needs& needs,
                             const Config& config, int64_t n_ctx) {
  const int64_t n_batch =
      batch_of(options, needs, config) + (needs.max_seqs > 1 ? needs.max_seqs : 0);
  return {.n_ctx = n_ctx,
          .max_seqs = needs.max_seqs,
          .max_rows = std::min(n_batch, n_ctx * needs.max_seqs),
          .max_outputs = needs.max_outputs,
          .kv_type = kv_type_of(options),
          .kv_policy = needs.kv_policy};
}

// Of what is left beside the weights, less a reserve for everything else; never more than all
// requests could use.
int64_t kv_bytes_left(const ModelOptions& options, const ModelSession::Needs& needs,
                      const ModelFile& file, const Config& config, const Machine& machine) {
  const size_t available = available_bytes(machine, options);
  const size_t taken = weight_bytes(file, options) + kv_reserve(available);
  const size_t left = available > taken ? available - taken : 0;
  const int64_t most =
      needs.max_seqs * kv_bytes_of_context(config, config.n_ctx, kv_type_of(options));
  return std::min<int64_t>(static_cast<int64_t>(left), most);
}

}  // namespace

void add_model_options(Command& command, ModelOptions& options, bool positional) {
  add_model_name(command, options.model, positional);
  command.option("-t,--threads", options.threads, "Number of threads (default: one per CPU)")
      .range(1, 1024);
  command
      .option("-c,--ctx-size", options.n_ctx,
              "Context length in tokens (default: what the model was trained for, or what fits in "
              "memory)")
      .range(1, 1 << 24);
  command.option("-b,--batch-size", options.n_batch, kBatchHelp).range(1, 8192);
  command
      .option("--kv-type", options.kv_type,
              "Type of the KV cache: f16, bf16 or f32 (default: f16, on a GPU bf16)")
      .type_name("TYPE")
      .one_of({"f16", "bf16", "f32"});
  command.option("--device", options.device, "Where the model runs: cpu or cuda")
      .type_name("DEVICE")
      .one_of({"cpu", "cuda"})
      .show_default();
}

Result<std::unique_ptr<ModelSession>> ModelSession::load(const ModelOptions& options,
                                                         const Needs& needs) {
  const int64_t start_ns = now_ns();
  std::unique_ptr<ModelSession> session(new ModelSession());
  const bool on_cuda = options.device == "cuda";
  // A thread that has a team is pinned: it would find one CPU.
  session->machine_ = needs.beside != nullptr ? needs.beside->machine_
                      : on_cuda               ? find_machine()
                                              : find_host();
  if (on_cuda && session->machine_.gpus.empty())
    return error(Code::unavailable, "no GPU: {}", session->machine_.gpu_problem);
  MILLRACE_ASSIGN(session->force_, Force::from_environment());
  MILLRACE_ASSIGN(session->profile_, load_profile(session->machine_));
  MILLRACE_ASSIGN(ModelFile file, open_model(options.model));
  MILLRACE_ASSIGN(const Config config, read_config(file));
  MILLRACE_TRY(validate(config));
  const int threads = options.threads > 0 ? options.threads : session->machine_.n_cpus;
  session->name_ = display_name(options.model, file);
  const int64_t n_ctx = context_of(options, needs, file, config, session->machine_);
  if (needs.beside == nullptr)
    session->own_team_ = std::make_unique<Team>(threads, session->machine_.cpus);
  session->team_ = needs.beside != nullptr ? needs.beside->team_ : session->own_team_.get();
  if (on_cuda) {
    MILLRACE_ASSIGN(session->device_, cuda_device());
  } else {
    session->device_ = cpu_device(*session->team_);
  }
  session->from_.emplace(PickFrom{session->machine_, session->profile_, session->force_,
                                  on_cuda ? DeviceKind::cuda : DeviceKind::cpu});
  EngineOptions engine = engine_options(options, needs, config, n_ctx);
  engine.kv_bytes = needs.kv_bytes >= 0
                        ? needs.kv_bytes
                        : kv_bytes_left(options, needs, file, config, session->machine_);
  Progress progress("loading");
  const auto show = [&](size_t done, size_t total) {
    const double share =
        static_cast<double>(done) / static_cast<double>(std::max<size_t>(total, 1));
    if (!needs.quiet) progress.at(share, session->name_);
  };
  MILLRACE_ASSIGN(session->engine_, Engine::load(std::move(file), *session->device_,
                                                 *session->team_, *session->from_, engine, show));
  progress.clear();
  for (const std::string& warning : session->engine_->network().warnings())
    fmt::print(stderr, "millrace: warning: {}\n", warning);
  session->load_seconds_ = static_cast<double>(now_ns() - start_ns) * 1e-9;
  return session;
}

Result<LanguageModel> ModelSession::language_model() {
  auto model = LanguageModel::make(*engine_, *from_);
  if (model.ok()) print_warnings(model->tokenizer());
  return model;
}

}  // namespace millrace::cli
