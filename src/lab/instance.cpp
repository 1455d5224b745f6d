#include "lab/instance.h"

#include <cstring>

#include "lab/bytes.h"
#include "lab/poison.h"
#include "tensor/format.h"

namespace millrace::lab {
namespace {

constexpr std::byte kSlack{0xa5};
size_t align_of(const Port& port) {
  if (port.align != 0) return port.align;
  if (!is_block_format(port.type)) return static_cast<size_t>(format_of(port.type).block_bytes);
  return 2;  // block formats lead with fp16 fields at even offsets
}

}  // namespace

Result<Instance> Instance::make(const Op& op, Case problem, uint64_t seed) {
  Instance it;
  it.op_ = &op;
  it.case_ = std::move(problem);
  const auto& ports = it.case_.ports;
  it.originals_.resize(ports.size());
  it.input_hashes_.resize(ports.size());
  for (size_t i = 0; i < ports.size(); ++i) {
    const Port& port = ports[i];
    MILLRACE_ASSIGN(GuardedBuffer buffer, GuardedBuffer::make(bytes_of(port), align_of(port)));
    std::memset(buffer.slack().data(), static_cast<int>(kSlack), buffer.slack().size());
    it.buffers_.push_back(std::move(buffer));
  }
  it.fill(seed);
  return it;
}

void Instance::fill(uint64_t seed) {
  seed_ = seed;
  for (size_t i = 0; i < buffers_.size(); ++i) {
    const Port& port = case_.ports[i];
    const GuardedBuffer& buffer = buffers_[i];
    if (port.role != Role::out) {
      Rng rng(seed, i);
      port.fill(rng, buffer.data());
    }
    if (port.role == Role::inout)
      originals_[i].assign(buffer.data(), buffer.data() + buffer.bytes());
  }
  derive();
  reset_outputs();
}

void Instance::refill(uint64_t seed) {
  fill(seed);
  for (auto& [name, packed] : packed_)
    for (size_t i = 0; i < buffers_.size(); ++i)
      if (case_.ports[i].role == Role::weight) {
        std::vector<std::span<std::byte>> views;
        for (const auto& buffer : buffers_) views.emplace_back(buffer.data(), buffer.bytes());
        layout_named(*op_, name)->pack(bind(views).bytes, buffers_[i].data(), packed.data());
      }
}

void Instance::derive() {
  std::vector<void*> pointers;
  for (const auto& buffer : buffers_) pointers.push_back(buffer.data());
  if (case_.derive) case_.derive(pointers);
  for (size_t i = 0; i < buffers_.size(); ++i)
    if (is_input(case_.ports[i].role))
      input_hashes_[i] = hash_of(buffers_[i].data(), buffers_[i].bytes());
}

Result<std::vector<std::span<std::byte>>> Instance::views_for(const Variant& variant) {
  std::vector<std::span<std::byte>> views;
  for (const auto& buffer : buffers_) views.emplace_back(buffer.data(), buffer.bytes());
  if (variant.layout == "plain") return views;
  const Layout* layout = layout_named(*op_, variant.layout);
  MILLRACE_CHECK(layout != nullptr, "{}: {} needs the unknown layout {}", op_->name, variant.name,
                 variant.layout);
  for (size_t i = 0; i < views.size(); ++i) {
    if (case_.ports[i].role != Role::weight) continue;
    auto found = packed_.find(variant.layout);
    if (found == packed_.end()) {
      const ArgsBox args = bind(views);
      MILLRACE_ASSIGN(GuardedBuffer packed, GuardedBuffer::make(layout->bytes(args.bytes), 64));
      layout->pack(args.bytes, buffers_[i].data(), packed.data());
      found = packed_.emplace(variant.layout, std::move(packed)).first;
    }
    views[i] = {found->second.data(), found->second.bytes()};
  }
  return views;
}

Result<ArgsBox> Instance::args_for(const Variant& variant) {
  MILLRACE_ASSIGN(const auto views, views_for(variant));
  return bind(views);
}

ArgsBox Instance::bind(std::span<const std::span<std::byte>> views) const {
  std::vector<void*> pointers;
  for (const auto& view : views) pointers.push_back(view.data());
  ArgsBox args;
  case_.bind(pointers, args);
  return args;
}

void Instance::reset_outputs() {
  for (size_t i = 0; i < buffers_.size(); ++i) {
    if (case_.ports[i].role == Role::out)
      poison(case_.ports[i], {buffers_[i].data(), buffers_[i].bytes()},
             poison_salt(seed_, n_resets_, 0, i));
    if (case_.ports[i].role == Role::inout && !originals_[i].empty())
      std::memcpy(buffers_[i].data(), originals_[i].data(), originals_[i].size());
  }
  ++n_resets_;
}

Status Instance::check_untouched() const {
  for (size_t i = 0; i < buffers_.size(); ++i) {
    const Port& port = case_.ports[i];
    for (std::byte b : buffers_[i].slack())
      if (b != kSlack)
        return error(Code::wrong_result, "bytes before port {} were written", port.name);
    if (is_input(port.role) && hash_of(buffers_[i].data(), buffers_[i].bytes()) != input_hashes_[i])
      return error(Code::wrong_result, "input port {} was written", port.name);
  }
  return {};
}

}  // namespace millrace::lab
