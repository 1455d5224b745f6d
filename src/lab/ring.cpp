#include "lab/ring.h"

#include <algorithm>
#include <cstring>
#include <numeric>

#include "lab/bytes.h"
#include "lab/plan.h"
#include "lab/poison.h"
#include "tensor/format.h"

namespace millrace::lab {
namespace {

constexpr size_t kLine = 64;
constexpr size_t kMaxEntries = size_t{1} << 17;  // bounds the calls' own bytes
// Contents that the case fills: two at least, then as many as this; a second or so of drawing.
constexpr size_t kFillBytes = size_t{64} << 20;
constexpr size_t kMaxBases = 64;
constexpr std::string_view kPlain = "plain";

size_t round_up(size_t bytes) {
  return (bytes + kLine - 1) / kLine * kLine;
}

// Also of nothing, where pointers may be null.
void copy_bytes(std::byte* dst, const std::byte* src, size_t bytes) {
  if (bytes > 0) std::memcpy(dst, src, bytes);
}

// What a base keeps of a port: the weight twice.
size_t base_bytes(const Port& port) {
  if (port.role == Role::out) return 0;
  return round_up(port.role == Role::weight ? 2 * bytes_of(port) : bytes_of(port));
}

// The pieces a weight may be rotated by: its format's blocks, or a cache line of plain elements.
size_t block_bytes(const Port& port) {
  const Format& format = format_of(port.type);
  const auto bytes = static_cast<size_t>(format.block_bytes);
  return format.block_elems > 1 || bytes_of(port) % kLine != 0 ? bytes : kLine;
}

}  // namespace

Result<Ring::Slab> Ring::make_slab(size_t bytes, size_t n) {
  Slab slab;
  slab.stride = std::max(round_up(bytes), kLine);
  MILLRACE_ASSIGN(slab.memory, HostBuffer::make(slab.stride * n));
  return slab;
}

Result<Ring> Ring::make(const Op& op, const Case& problem, std::span<const Variant* const> variants,
                        uint64_t seed) {
  Ring ring;
  ring.op_ = &op;
  ring.case_ = problem;
  ring.seed_ = seed;
  size_t inputs = 0;
  for (size_t i = 0; i < problem.ports.size(); ++i) {
    const Port& port = problem.ports[i];
    if (port.role != Role::out) inputs += bytes_of(port);
    ring.memory_bytes_ += base_bytes(port);
    if (port.role == Role::weight)
      ring.weight_ = static_cast<int>(i);
    else
      ring.memory_bytes_ += round_up(bytes_of(port));
  }
  for (const Variant* v : variants) ring.weights_[std::string(v->layout)];
  for (const auto& [layout, slab] : ring.weights_)
    ring.memory_bytes_ += round_up(ring.weight_bytes(layout));
  ring.memory_bytes_ += variants.size() * sizeof(ArgsBox);
  // What the definition reads: a gather reads few rows of a large table.
  ring.fill_bytes_ = std::max<size_t>(1, inputs);
  const auto floor_bytes = static_cast<size_t>(problem.floor.read_bytes);
  ring.entry_bytes_ = std::max<size_t>(1, floor_bytes > 0 ? std::min(floor_bytes, inputs) : inputs);
  MILLRACE_TRY(ring.add_base());
  Team alone(1);
  MILLRACE_TRY(ring.grow(1, alone));
  return ring;
}

size_t Ring::entries_for(size_t cold_bytes, size_t memory_bytes) const {
  const size_t wanted = (cold_bytes + entry_bytes_ - 1) / entry_bytes_;
  return std::clamp<size_t>(std::min(wanted, memory_bytes / memory_bytes_), 2, kMaxEntries);
}

// A function of the shape, never of the clock: what is verified must not depend on how busy the
// machine was.
size_t Ring::n_bases_for(size_t n_entries) const {
  const size_t most = std::clamp<size_t>(kFillBytes / fill_bytes_, 2, kMaxBases);
  return std::min(n_entries, most);
}

Status Ring::grow(size_t n_entries, Team& team) {
  while (bases_.size() < n_bases_for(n_entries)) MILLRACE_TRY(add_base());
  MILLRACE_TRY(allocate(n_entries));
  team.run([&](Lane& lane) {
    const Share mine = share_of(static_cast<int64_t>(n_entries_), lane.index, lane.count);
    for (int64_t i = mine.begin; i < mine.end; ++i) {
      const auto e = static_cast<size_t>(i);
      copy_inputs(e);
      if (weight_ >= 0) pack_weight(e);
    }
  });
  return {};
}

size_t Ring::weight_bytes(std::string_view layout) const {
  if (weight_ < 0) return 0;
  if (layout == kPlain) return bytes_of(case_.ports[static_cast<size_t>(weight_)]);
  const Layout* packing = layout_named(*op_, layout);
  MILLRACE_CHECK(packing != nullptr, "{} has no layout {}", op_->name, layout);
  return packing->bytes(shape_of(case_).bytes);
}

Status Ring::add_base() {
  auto& base = bases_.emplace_back();
  for (size_t i = 0; i < case_.ports.size(); ++i) {
    const Port& port = case_.ports[i];
    MILLRACE_ASSIGN(HostBuffer buffer, HostBuffer::make(base_bytes(port)));
    Rng rng(seed_ + bases_.size() - 1, i);
    if (port.role != Role::out) port.fill(rng, buffer.data());
    if (port.role == Role::weight)
      copy_bytes(buffer.data() + bytes_of(port), buffer.data(), bytes_of(port));
    base.push_back(std::move(buffer));
  }
  std::vector<void*> pointers;
  for (const HostBuffer& buffer : base) pointers.push_back(buffer.data());
  if (case_.derive) case_.derive(pointers);
  return {};
}

Status Ring::allocate(size_t n_entries) {
  n_entries_ = n_entries;
  content_.resize(n_entries);
  std::iota(content_.begin(), content_.end(), 0);
  slabs_.clear();
  for (size_t i = 0; i < case_.ports.size(); ++i) {
    const bool is_weight = static_cast<int>(i) == weight_;
    MILLRACE_ASSIGN(Slab slab, make_slab(bytes_of(case_.ports[i]), is_weight ? 0 : n_entries_));
    slabs_.push_back(std::move(slab));
  }
  for (auto& [layout, slab] : weights_) {
    MILLRACE_ASSIGN(slab, make_slab(weight_bytes(layout), weight_ < 0 ? 0 : n_entries_));
  }
  return {};
}

const std::byte* Ring::original(size_t entry, size_t port) const {
  const size_t content = content_[entry];
  const std::byte* base = bases_[content % bases_.size()][port].data();
  const size_t bytes = bytes_of(case_.ports[port]);
  if (static_cast<int>(port) != weight_ || content < bases_.size() || bytes == 0) return base;
  // Evenly spread over the weight, so that no two entries of a base are alike.
  const size_t block = block_bytes(case_.ports[port]), n_blocks = bytes / block;
  const size_t step = std::max<size_t>(1, n_blocks * bases_.size() / n_entries_);
  return base + content / bases_.size() * step % n_blocks * block;
}

size_t Ring::original_of(size_t content) const {
  return weight_ >= 0 ? content : content % bases_.size();
}

size_t Ring::partner_of(size_t entry, Rng& rng) const {
  const size_t first = rng.below(n_entries_);
  for (size_t i = 0; i < n_entries_; ++i) {
    const size_t other = (first + i) % n_entries_;
    if (original_of(content_[other]) != original_of(content_[entry])) return other;
  }
  return entry;
}

void Ring::exchange(size_t a, size_t b) {
  std::vector<std::byte> kept;
  const auto swap_in = [&](const Slab& slab) {
    kept.assign(slab.at(a), slab.at(a) + slab.stride);
    stream_copy(slab.at(a), slab.at(b), slab.stride);
    stream_copy(slab.at(b), kept.data(), slab.stride);
  };
  for (size_t i = 0; i < slabs_.size(); ++i)
    if (case_.ports[i].role != Role::out && static_cast<int>(i) != weight_) swap_in(slabs_[i]);
  if (weight_ >= 0)
    for (const auto& [layout, slab] : weights_) swap_in(slab);
  relabel(a, b);
}

void Ring::copy_inputs(size_t entry) {
  for (size_t i = 0; i < case_.ports.size(); ++i)
    if (case_.ports[i].role != Role::out && static_cast<int>(i) != weight_)
      copy_bytes(slabs_[i].at(entry), original(entry, i), bytes_of(case_.ports[i]));
}

void Ring::pack_weight(size_t entry) {
  const auto port = static_cast<size_t>(weight_);
  const std::byte* plain = original(entry, port);
  for (const auto& [layout, slab] : weights_) {
    if (layout == kPlain) {
      copy_bytes(slab.at(entry), plain, bytes_of(case_.ports[port]));
      continue;
    }
    std::vector<void*> pointers = ports(entry, layout);
    pointers[port] = const_cast<std::byte*>(plain);  // only read
    ArgsBox args;
    case_.bind(pointers, args);
    layout_named(*op_, layout)->pack(args.bytes, plain, slab.at(entry));
  }
}

bool Ring::overwrites_inputs() const {
  return std::any_of(case_.ports.begin(), case_.ports.end(),
                     [](const Port& port) { return port.role == Role::inout; });
}

std::vector<void*> Ring::ports(size_t entry, std::string_view layout) const {
  std::vector<void*> pointers;
  for (size_t i = 0; i < slabs_.size(); ++i)
    pointers.push_back(static_cast<int>(i) == weight_ ? weights_.find(layout)->second.at(entry)
                                                      : slabs_[i].at(entry));
  return pointers;
}

ArgsBox Ring::args(size_t entry, const Variant& variant) const {
  ArgsBox args;
  case_.bind(ports(entry, variant.layout), args);
  return args;
}

void Ring::reset_entry(size_t entry, bool cold) {
  for (size_t i = 0; i < slabs_.size(); ++i) {
    if (!is_output(case_.ports[i].role)) continue;
    const size_t bytes = slabs_[i].stride;
    std::byte* dst = slabs_[i].at(entry);
    if (case_.ports[i].role == Role::out)
      poison(case_.ports[i], {dst, bytes}, poison_salt(seed_, n_resets_, entry, i), cold);
    else if (cold && bytes == bases_[content_[entry] % bases_.size()][i].bytes())
      stream_copy(dst, original(entry, i), bytes);
    else
      copy_bytes(dst, original(entry, i), bytes_of(case_.ports[i]));
  }
}

void Ring::reset(size_t begin, size_t end, bool cold, Team& team) {
  ++n_resets_;
  team.run([&](Lane& lane) {
    const Share mine = share_of(static_cast<int64_t>(end - begin), lane.index, lane.count);
    for (int64_t i = mine.begin; i < mine.end; ++i)
      reset_entry(begin + static_cast<size_t>(i), cold);
  });
}

uint64_t Ring::output_hash(size_t entry) const {
  uint64_t hash = 0;
  for (size_t i = 0; i < slabs_.size(); ++i)
    if (is_output(case_.ports[i].role))
      hash = hash * 31 + hash_of(slabs_[i].at(entry), bytes_of(case_.ports[i]));
  return hash;
}

}  // namespace millrace::lab
