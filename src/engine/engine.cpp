#include "engine/engine.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/hash.h"
#include "kernels/classes.h"
#include "kernels/sample/op.h"
#include "tensor/format.h"

namespace millrace {
namespace {

constexpr int64_t kMaxKvBytes = int64_t{1} << 42;
constexpr int64_t kTypicalContext = 4096;

int64_t ceil_div(int64_t a, int64_t b) {
  return (a + b - 1) / b;
}

Status check_options(const EngineOptions& o, const Config& config) {
  if (o.n_ctx < 1 || o.n_ctx > (1 << 28))
    return error(Code::invalid_argument, "a context of {} tokens (1 to {})", o.n_ctx, 1 << 28);
  if (o.max_seqs < 1 || o.max_seqs > 4096 || o.max_rows < 1 || o.max_rows > 8192)
    return error(Code::invalid_argument,
                 "{} sequences (1 to 4096) and {} tokens a step (1 to 8192)", o.max_seqs,
                 o.max_rows);
  if (o.kv_bytes == 0 && o.n_ctx * o.max_seqs > kMaxKvBytes / kv_bytes_per_token(config, o.kv_type))
    return error(
        Code::out_of_memory,
        "{} sequences of {} tokens need more than {} GB of KV cache; -c sets a smaller context",
        o.max_seqs, o.n_ctx, kMaxKvBytes >> 30);
  return {};
}

// Pages of a group that one sequence needs at most: of a window those it sees, and of the step.
int64_t pages_of_a_sequence(const KvGroup& group, const EngineOptions& o) {
  const int64_t all = ceil_div(o.n_ctx, kPageTokens);
  if (group.window == 0) return all;
  return std::min(all, ceil_div(group.window + o.max_rows, kPageTokens) + 1);
}

}  // namespace

// Without a budget, what all sequences need. Of a budget every group first gets what one sequence
// needs at least (all of a window, one page of what sees everything), and then its share of the
// rest: as remembered contexts of kTypicalContext tokens need it, of a window at two places, where
// the last prompt ended and where its answer did.
Status Engine::make_pools(const Config& config) {
  const std::vector<KvGroup> groups = kv_groups(config);
  std::vector<int64_t> least, more;
  double least_bytes = 0, more_bytes = 0;
  for (const KvGroup& group : groups) {
    const int64_t one = pages_of_a_sequence(group, options_);
    const auto page_bytes =
        static_cast<double>(kPageTokens * kv_bytes_per_token(config, group, options_.kv_type));
    least.push_back(group.window == 0 ? 1 : one);
    if (options_.kv_bytes == 0)
      more.push_back(options_.max_seqs * one - least.back());
    else
      more.push_back(group.window == 0 ? kTypicalContext / kPageTokens : 2 * one);
    least_bytes += static_cast<double>(least.back()) * page_bytes;
    more_bytes += static_cast<double>(more.back()) * page_bytes;
  }
  const auto budget = static_cast<double>(options_.kv_bytes);
  if (options_.kv_bytes != 0 && budget < least_bytes)
    return error(Code::invalid_argument,
                 "{} bytes of KV are less than the {:.0f} that one sequence needs; give more",
                 options_.kv_bytes, least_bytes);
  const double share = options_.kv_bytes == 0 ? 1 : (budget - least_bytes) / more_bytes;
  for (size_t i = 0; i < groups.size(); ++i) {
    const double n_pages = static_cast<double>(least[i]) + share * static_cast<double>(more[i]);
    if (n_pages * kPageTokens > static_cast<double>(std::numeric_limits<int32_t>::max()))
      return error(Code::out_of_memory,
                   "{:.0f} KV pages of {} tokens are too many; give a smaller "
                   "context or budget",
                   n_pages, kPageTokens);
    MILLRACE_ASSIGN(KvPages pool, KvPages::make(config, groups[i], options_.kv_type,
                                                static_cast<int64_t>(n_pages), device_));
    pools_.push_back(std::move(pool));
  }
  tree_ = std::make_unique<PrefixTree>(pools_, &retention_);
  return {};
}

int64_t Engine::n_pages_for(size_t group, int64_t n_tokens) const {
  return std::min(ceil_div(n_tokens, kPageTokens),
                  pages_of_a_sequence(pools_[group].group(), options_));
}

StepBindings Engine::bindings(const Config& config) const {
  StepBindings out;
  for (int i = 0; i < kStepInputs; ++i) out.inputs[i] = inputs_.input(static_cast<StepInput>(i));
  out.layers.resize(static_cast<size_t>(config.n_layers));
  for (size_t group = 0; group < pools_.size(); ++group) {
    const auto& layers = pools_[group].group().layers;
    for (size_t i = 0; i < layers.size(); ++i) {
      BoundKv kv = pools_[group].layer(static_cast<int64_t>(i));
      kv.slots = inputs_.bound_slots(group);
      kv.tables = inputs_.bound_tables(group);
      kv.n_seqs = inputs_.sizes().max_seqs;
      kv.max_pages = inputs_.sizes().max_pages;
      kv.work = inputs_.bound_work(group);
      kv.n_shares = work_.n_shares;
      kv.n_records = work_.n_records;
      out.layers[static_cast<size_t>(layers[i])] = kv;
    }
  }
  return out;
}

Result<std::unique_ptr<Engine>> Engine::load(ModelFile file, Device& device, Team& team,
                                             const PickFrom& from, const EngineOptions& options,
                                             const LoadProgress& progress) {
  MILLRACE_ASSIGN(const Config config, read_config(file));
  MILLRACE_TRY(check_options(options, config));
  EngineOptions bounded = options;
  bounded.max_outputs = std::min(std::max(options.max_outputs, options.max_seqs), options.max_rows);
  std::unique_ptr<Engine> engine(new Engine(device, bounded));
  MILLRACE_TRY(engine->make_pools(config));
  if (device.kind() == DeviceKind::cuda) {
    MILLRACE_ASSIGN(engine->work_, attention::device_work({.head_dim = config.head_dim,
                                                           .n_heads = config.n_heads,
                                                           .n_kv_heads = config.n_kv_heads,
                                                           .max_rows = bounded.max_rows,
                                                           .max_tokens = bounded.n_ctx}));
  }
  MILLRACE_ASSIGN(engine->inputs_,
                  StepInputs::make({.max_rows = bounded.max_rows,
                                    .max_outputs = bounded.max_outputs,
                                    .max_seqs = bounded.max_seqs,
                                    .max_pages = ceil_div(bounded.n_ctx, kPageTokens),
                                    .n_groups = engine->pools_.size(),
                                    .n_shares = engine->work_.n_shares},
                                   device));
  MILLRACE_ASSIGN(engine->network_, Network::load(std::move(file), {device, team, from},
                                                  {bounded.max_rows, bounded.max_outputs},
                                                  engine->bindings(config), progress));
  engine->seqs_.resize(static_cast<size_t>(bounded.max_seqs));
  for (Sequence& s : engine->seqs_) s.pages.resize(engine->pools_.size());
  engine->outputs_.reserve(static_cast<size_t>(bounded.max_seqs));
  engine->taken_.reserve(engine->pools_.size() *
                         static_cast<size_t>(bounded.max_rows / kPageTokens + bounded.max_seqs));
  if (device.kind() == DeviceKind::cuda) {
    const auto n = static_cast<size_t>(bounded.max_outputs * config.n_vocab);
    MILLRACE_ASSIGN(engine->read_back_, PinnedBuffer::make(n * sizeof(float)));
  }
  return engine;
}

std::string Engine::step_classes() const {
  std::string text(device_.name());
  for (const std::string_view name : network_->program().lowered().classes())
    text += fmt::format(" {}.{}", name, revision_of(name));
  text += fmt::format(" kv.{}", name_of(options_.kv_type));
  return text;
}

std::string Engine::fingerprint() const {
  const auto sampling = device_.kind() == DeviceKind::cpu ? sample::kBlocks : sample::kDeviceBlocks;
  return hash128(fmt::format("{} {}.{}", step_classes(), sampling, revision_of(sampling)));
}

std::string Engine::root() const {
  return hash128(fmt::format("{} {} {} {}", network_->model_hash(), hash128(step_classes()),
                             name_of(options_.kv_type), kPageTokens));
}

size_t Engine::kv_bytes() const {
  size_t bytes = 0;
  for (const KvPages& pool : pools_)
    bytes += static_cast<size_t>(pool.n_pages()) * pool.page_bytes();
  return bytes;
}

Status Engine::keep_on_disk(disk::Folder folder, disk::TierOptions options,
                            const KvTierOptions& how) {
  if (pools_.size() > disk::kMaxParts)
    return error(Code::unsupported,
                 "this model has {} kinds of layers with KV of their own; contexts of at most {} "
                 "are kept on disk",
                 pools_.size(), disk::kMaxParts);
  options.store.root = disk::root_of(root());
  if (retention_.by_value()) options.store.retention = &retention_;
  for (const KvPages& pool : pools_) options.slot_bytes += pool.page_bytes();
  MILLRACE_ASSIGN(auto disk, disk::Tier::open(std::move(folder), options));
  tier_ =
      std::make_unique<KvTier>(std::move(disk), options.store.root, *tree_, pools_, device_, how);
  return {};
}

Engine::Sequence& Engine::at(int seq) {
  return const_cast<Sequence&>(std::as_const(*this).at(seq));
}

const Engine::Sequence& Engine::at(int seq) const {
  MILLRACE_CHECK(seq >= 0 && static_cast<size_t>(seq) < seqs_.size() &&
                     seqs_[static_cast<size_t>(seq)].is_open,
                 "sequence {} is not open", seq);
  return seqs_[static_cast<size_t>(seq)];
}

Result<int> Engine::open() {
  for (size_t i = 0; i < seqs_.size(); ++i) {
    if (seqs_[i].is_open) continue;
    seqs_[i].is_open = true;
    seqs_[i].tokens.reserve(static_cast<size_t>(options_.n_ctx));
    for (auto& pages : seqs_[i].pages)
      pages.reserve(static_cast<size_t>(inputs_.sizes().max_pages));
    return static_cast<int>(i);
  }
  return error(Code::unavailable, "all {} sequences are in use", seqs_.size());
}

void Engine::release_from(Sequence& s, size_t group, size_t page) {
  auto& pages = s.pages[group];
  for (size_t i = page; i < pages.size(); ++i)
    if (pages[i] >= 0) pools_[group].release(pages[i]);
  pages.resize(std::min(pages.size(), page));
}

void Engine::close(int seq) {
  Sequence& s = at(seq);
  for (size_t group = 0; group < pools_.size(); ++group) release_from(s, group, 0);
  s.tokens.clear();
  s.is_open = s.is_remembered = false;
}

// Whether each window still has the pages that the row after the first n tokens sees.
bool Engine::has_seen_pages(std::span<const std::vector<int32_t>> pages, int64_t n) const {
  for (size_t group = 0; group < pools_.size(); ++group) {
    const int64_t window = pools_[group].group().window;
    for (int64_t page = first_seen_page(n, window); page < ceil_div(n, kPageTokens); ++page)
      if (pages[group][static_cast<size_t>(page)] < 0) return false;
  }
  return true;
}

// The page that the next token goes to, if some of its tokens stay: it is written again, so it must
// be this sequence's alone.
int64_t Engine::open_last_page(const Sequence& s, int64_t n) {
  const auto page = static_cast<size_t>(n / kPageTokens);
  if (n % kPageTokens == 0) return n;
  for (size_t group = 0; group < pools_.size(); ++group)
    if (const int32_t id = s.pages[group][page]; id >= 0 && pools_[group].references(id) > 1)
      return n / kPageTokens * kPageTokens;
  for (size_t group = 0; group < pools_.size(); ++group)
    if (const int32_t id = s.pages[group][page]; id >= 0) pools_[group].unseal(id);
  return n;
}

int64_t Engine::keep(int seq, int64_t n) {
  Sequence& s = at(seq);
  n = open_last_page(s, std::min(n, static_cast<int64_t>(s.tokens.size())));
  if (!has_seen_pages(s.pages, n)) n = 0;
  for (size_t group = 0; group < pools_.size(); ++group)
    release_from(s, group, static_cast<size_t>(ceil_div(n, kPageTokens)));
  s.tokens.resize(static_cast<size_t>(n));
  return n;
}

// The same page where it is whole, since nobody writes it then; else a copy.
Result<int32_t> Engine::share_page(size_t group, int32_t id, bool whole) {
  if (id < 0) return id;
  KvPages& pool = pools_[group];
  pool.retain(id);  // so that taking another does not give it up
  if (whole) return id;
  auto mine = tree_->take_page(group);
  if (mine.ok()) {
    const Status copied = device_.copy(pool.page(mine.value()), pool.page(id), pool.page_bytes());
    if (!copied.ok()) {
      pool.release(mine.value());
      mine = copied;
    }
  }
  pool.release(id);
  return mine;
}

// For a sequence that gets the first n tokens of what lies in these pages. All whole ones first:
// taking a page for the rest may give up what nobody holds.
Status Engine::share_pages(Sequence& to, std::span<const std::vector<int32_t>> pages, int64_t n) {
  const auto n_whole = static_cast<size_t>(n / kPageTokens);
  const bool has_rest = n % kPageTokens != 0;
  for (const bool whole : {true, false})
    for (size_t group = 0; group < pools_.size(); ++group)
      for (size_t page = whole ? 0 : n_whole; page < n_whole + (whole ? 0 : has_rest); ++page) {
        MILLRACE_ASSIGN(const int32_t id, share_page(group, pages[group][page], whole));
        to.pages[group].push_back(id);
      }
  return {};
}

Result<int> Engine::fork(int seq, int64_t n) {
  const Sequence& from = at(seq);
  MILLRACE_CHECK(n >= 0 && n <= static_cast<int64_t>(from.tokens.size()), "the first {} of {}", n,
                 from.tokens.size());
  if (!has_seen_pages(from.pages, n))
    return error(Code::unavailable, "of the first {} tokens a layer's window has let go", n);
  MILLRACE_ASSIGN(const int copy, open());
  Sequence& to = at(copy);
  if (Status shared = share_pages(to, from.pages, n); !shared.ok()) {
    close(copy);
    return shared;
  }
  to.tokens.assign(from.tokens.begin(), from.tokens.begin() + n);
  return copy;
}

Result<int> Engine::open(std::span<const int32_t> prompt, std::string_view salt, bool persists,
                         const Use& use) {
  MILLRACE_ASSIGN(const int seq, open());
  Sequence& s = at(seq);
  s.is_remembered = true;
  s.persists = persists;
  s.salt = salt;
  s.use = use;
  const auto found = tree_->find(salt, prompt.first(prompt.empty() ? 0 : prompt.size() - 1), use);
  int64_t n = found.n;
  // Where there is no page to copy the last one to, it goes on from the last whole page.
  if (!share_pages(s, found.pages, n).ok()) {
    for (size_t group = 0; group < pools_.size(); ++group) release_from(s, group, 0);
    n = n / kPageTokens * kPageTokens;
    if (!has_seen_pages(found.pages, n) || !share_pages(s, found.pages, n).ok()) n = 0;
  }
  s.tokens.assign(prompt.begin(), prompt.begin() + n);
  return seq;
}

void Engine::remember(int seq) {
  Sequence& s = at(seq);
  MILLRACE_CHECK(s.is_remembered, "sequence {} was not opened for the tree", seq);
  tree_->insert(s.salt, s.tokens, s.pages, true, s.persists, s.use);
}

Status Engine::check(std::span<const Work> batch) const {
  int64_t n_rows = 0, n_outputs = 0;
  for (size_t i = 0; i < batch.size(); ++i) {
    const Work& work = batch[i];
    const auto n = static_cast<int64_t>(work.tokens.size());
    const auto n_before = static_cast<int64_t>(at(work.seq).tokens.size());
    for (size_t j = 0; j < i; ++j)
      MILLRACE_CHECK(batch[j].seq != work.seq, "sequence {} is twice in a step", work.seq);
    if (n_before + n > options_.n_ctx)
      return error(Code::unavailable,
                   "the context of {} tokens is full: it holds {}, and {} more do not fit; -c "
                   "sets a larger one",
                   options_.n_ctx, n_before, n);
    for (const int32_t token : work.tokens)
      if (token < 0 || token >= config().n_vocab)
        return error(Code::invalid_argument, "token {} is outside the vocabulary of {}", token,
                     config().n_vocab);
    n_rows += n;
    if (work.wants != Work::Logits::none && n > 0)
      n_outputs += work.wants == Work::Logits::all ? n : 1;
  }
  if (n_rows > options_.max_rows || n_outputs > options_.max_outputs)
    return error(Code::invalid_argument, "a step of {} tokens and {} outputs; {} and {} at most",
                 n_rows, n_outputs, options_.max_rows, options_.max_outputs);
  return {};
}

Status Engine::reserve(const Work& work) {
  Sequence& s = at(work.seq);
  const auto n_after = static_cast<int64_t>(s.tokens.size() + work.tokens.size());
  for (size_t group = 0; group < pools_.size(); ++group) {
    auto& pages = s.pages[group];
    while (static_cast<int64_t>(pages.size()) * kPageTokens < n_after) {
      MILLRACE_ASSIGN(const int32_t id, tree_->take_page(group));
      pages.push_back(id);
      taken_.push_back({work.seq, group});
    }
  }
  return {};
}

// Contexts that nobody uses make room only for a batch that will fit: they do not come back.
Status Engine::check_room(std::span<const Work> batch) const {
  for (size_t group = 0; group < pools_.size(); ++group) {
    int64_t n = 0;
    for (const Work& work : batch) {
      const Sequence& s = at(work.seq);
      const auto n_after = static_cast<int64_t>(s.tokens.size() + work.tokens.size());
      n += std::max<int64_t>((n_after + kPageTokens - 1) / kPageTokens - std::ssize(s.pages[group]),
                             0);
    }
    if (n <= n_free_pages(group) || n <= n_free_pages(group) + tree_->n_reclaimable(group))
      continue;
    return error(Code::unavailable, "{} more KV pages of {} tokens are needed; {} of {} are free",
                 n, kPageTokens, n_free_pages(group), n_pages(group));
  }
  return {};
}

Status Engine::reserve(std::span<const Work> batch) {
  if (options_.fault) MILLRACE_TRY(options_.fault("reserve"));
  MILLRACE_TRY(check_room(batch));
  for (const Work& work : batch) MILLRACE_TRY(reserve(work));
  return {};
}

void Engine::roll_back() {
  for (auto taken = taken_.rbegin(); taken != taken_.rend(); ++taken) {
    auto& pages = at(taken->seq).pages[taken->group];
    pools_[taken->group].release(pages.back());
    pages.pop_back();
  }
  taken_.clear();
  outputs_.clear();
  n_rows_ = n_outputs_ = 0;
}

void Engine::fill_rows(std::span<const Work> batch) {
  n_rows_ = n_outputs_ = 0;
  outputs_.clear();
  for (const Work& work : batch) {
    const Sequence& s = at(work.seq);
    const auto n_before = static_cast<int64_t>(s.tokens.size());
    const auto n = static_cast<int64_t>(work.tokens.size());
    for (int64_t i = 0; i < n; ++i, ++n_rows_) {
      const int64_t position = n_before + i;
      inputs_.tokens()[n_rows_] = work.tokens[static_cast<size_t>(i)];
      inputs_.positions()[n_rows_] = static_cast<int32_t>(position);
      inputs_.sequences()[n_rows_] = work.seq;
      for (size_t group = 0; group < pools_.size(); ++group)
        inputs_.slots(group)[n_rows_] = static_cast<int32_t>(
            s.pages[group][static_cast<size_t>(position / kPageTokens)] * kPageTokens +
            position % kPageTokens);
    }
    for (size_t group = 0; group < pools_.size(); ++group)
      inputs_.set_table(group, work.seq, s.pages[group]);
    Outputs outputs{n_outputs_, 0};
    if (work.wants != Work::Logits::none && n > 0)
      outputs.n = work.wants == Work::Logits::all ? n : 1;
    for (int64_t i = 0; i < outputs.n; ++i)
      inputs_.wanted()[n_outputs_++] = static_cast<int32_t>(n_rows_ - outputs.n + i);
    outputs_.push_back(outputs);
  }
}

// A page whose tokens are all computed is never written again.
void Engine::commit(std::span<const Work> batch) {
  for (const Work& work : batch) {
    Sequence& s = at(work.seq);
    const size_t first = s.tokens.size() / kPageTokens;
    s.tokens.insert(s.tokens.end(), work.tokens.begin(), work.tokens.end());
    for (size_t group = 0; group < pools_.size(); ++group)
      for (size_t page = first; page < s.tokens.size() / kPageTokens; ++page)
        if (const int32_t id = s.pages[group][page]; id >= 0) pools_[group].seal(id);
    const size_t n_whole = s.tokens.size() / kPageTokens * kPageTokens;
    if (s.is_remembered && s.tokens.size() / kPageTokens > first)
      tree_->insert(s.salt, std::span(s.tokens).first(n_whole), s.pages, false, s.persists, s.use);
    release_before_window(s);
  }
  taken_.clear();
}

// The next row, at position n, sees tokens n - window + 1 to n.
void Engine::release_before_window(Sequence& s) {
  for (size_t group = 0; group < pools_.size(); ++group) {
    const int64_t window = pools_[group].group().window;
    if (window == 0) continue;
    const int64_t first_seen = static_cast<int64_t>(s.tokens.size()) - window + 1;
    for (int64_t page = first_seen / kPageTokens - 1; page >= 0; --page) {
      int32_t& id = s.pages[group][static_cast<size_t>(page)];
      if (id < 0) break;
      pools_[group].release(id);
      id = -1;
    }
  }
}

// A GPU's attention walks a list of what the rows ask for, one for each kind of layer. Padding asks
// for nothing.
void Engine::list_work() {
  if (work_.n_shares == 0) return;
  const auto n = static_cast<size_t>(n_rows_);
  for (size_t group = 0; group < pools_.size(); ++group)
    attention::make_list({.sequences = {inputs_.sequences(), n},
                          .positions = {inputs_.positions(), n},
                          .n_heads = config().n_heads,
                          .n_kv_heads = config().n_kv_heads,
                          .page_tokens = kPageTokens,
                          .window = pools_[group].group().window},
                         work_, inputs_.work(group, n_rows_));
}

// A GPU is waited for: what it failed at is this step's, and its inputs can be written again.
Status Engine::step(std::span<const Work> batch, Program* then) {
  MILLRACE_TRY(check(batch));
  taken_.clear();
  Status status = reserve(batch);
  if (status.ok() && options_.fault) status = options_.fault("run");
  if (status.ok()) {
    fill_rows(batch);
    if (n_rows_ == 0) return {};
    StepProgram& program = network_->program();
    inputs_.pad_rows(n_rows_, program.padded(n_rows_, Count::rows));
    for (int64_t i = n_outputs_; i < program.padded(n_outputs_, Count::outputs); ++i)
      inputs_.wanted()[i] = 0;
    list_work();
    status = inputs_.upload(device_, n_rows_);
    is_read_back_ = false;
    if (status.ok()) status = program.run(n_rows_, n_outputs_, then);
    if (const Status done = device_.wait(); status.ok()) status = done;
    // The table of embeddings is read where the file has it.
    if (status.ok() && device_.kind() == DeviceKind::cpu) status = file().check();
  }
  status.ok() ? commit(batch) : roll_back();
  return status;
}

Result<std::span<const float>> Engine::logits(size_t work, int64_t row) {
  MILLRACE_CHECK(work < outputs_.size(), "work {} of a step of {}", work, outputs_.size());
  const Outputs& outputs = outputs_[work];
  if (row < 0) row += outputs.n;
  MILLRACE_CHECK(row >= 0 && row < outputs.n, "row {} of {}", row, outputs.n);
  const auto width = static_cast<size_t>(config().n_vocab);
  const float* logits = logits_on_device();
  if (device_.kind() == DeviceKind::cuda) {
    const size_t bytes = static_cast<size_t>(n_outputs_) * width * sizeof(float);
    if (!is_read_back_) MILLRACE_TRY(device_.read(read_back_.data(), logits, bytes));
    is_read_back_ = true;
    logits = reinterpret_cast<const float*>(read_back_.data());
  }
  return std::span(logits + static_cast<size_t>(outputs.first + row) * width, width);
}

Status compute(Engine& engine, int seq, std::span<const int32_t> tokens,
               const std::function<bool()>& stop) {
  const auto most = static_cast<size_t>(engine.options().max_rows);
  while (!tokens.empty() && !(stop && stop())) {
    const size_t n = std::min(tokens.size(), most);
    const bool is_last = n == tokens.size();
    MILLRACE_TRY(engine.step({.seq = seq,
                              .tokens = tokens.first(n),
                              .wants = is_last ? Work::Logits::last : Work::Logits::none}));
    tokens = tokens.subspan(n);
  }
  return {};
}

Status check_finite(std::span<const float> logits, int64_t position) {
  if (std::all_of(logits.begin(), logits.end(), [](float x) { return std::isfinite(x); }))
    return {};
  return error(Code::corrupt,
               "the model's logits are not finite at position {}: its weights are damaged, or its "
               "values leave the range of f32",
               position);
}

Status compute_all(Engine& engine, int seq, std::span<const int32_t> tokens,
                   const std::function<void(size_t row, std::span<const float> logits)>& on_row) {
  const auto most =
      static_cast<size_t>(std::min(engine.options().max_rows, engine.options().max_outputs));
  const auto n_before = std::ssize(engine.tokens(seq));
  for (size_t first = 0; first < tokens.size();) {
    const size_t n = std::min(tokens.size() - first, most);
    MILLRACE_TRY(
        engine.step({.seq = seq, .tokens = tokens.subspan(first, n), .wants = Work::Logits::all}));
    for (size_t i = 0; i < n; ++i) {
      MILLRACE_ASSIGN(const auto logits, engine.logits(0, static_cast<int64_t>(i)));
      MILLRACE_TRY(check_finite(logits, n_before + static_cast<int64_t>(first + i)));
      on_row(first + i, logits);
    }
    first += n;
  }
  return {};
}

int64_t keep_shared(Engine& engine, int seq, std::span<const int32_t> tokens) {
  const auto old = engine.tokens(seq);
  const auto differ = std::mismatch(old.begin(), old.end(), tokens.begin(), tokens.end()).second;
  const int64_t shared = differ - tokens.begin();
  return engine.keep(seq, std::min(shared, std::max<int64_t>(std::ssize(tokens) - 1, 0)));
}

}  // namespace millrace
