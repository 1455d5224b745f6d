#include "engine/disk/record.h"

#include <cstddef>
#include <cstring>
#include <vector>

namespace millrace::disk {
namespace {

constexpr uint64_t kMagic = 0x315643'4552'524d;  // "MRRECV1"
constexpr uint32_t kVersion = 2;
constexpr uint64_t kMaxPartBytes = uint64_t{1} << 32;

template <class T>
std::span<const std::byte> bytes_of_value(const T& value) {
  return std::as_bytes(std::span(&value, 1));
}

std::span<const std::byte> sealed_part(const Entry& entry) {
  return bytes_of_value(entry).first(offsetof(Entry, checksum));
}

Hash128 half_sha256(std::span<const std::byte> bytes) {
  const Sha256 digest = sha256(bytes);
  Hash128 out;
  std::memcpy(&out, digest.data(), sizeof out);
  return out;
}

}  // namespace

Root root_of(std::string_view engine_root) {
  return {.model = hash128_value(std::as_bytes(std::span(engine_root)))};
}

Salt salt_of(std::string_view text) {
  return sha256(std::as_bytes(std::span(text)));
}

uint64_t Entry::payload_bytes() const {
  uint64_t bytes = 0;
  for (const Part& part : parts) bytes += part.bytes;
  return bytes;
}

uint32_t Entry::groups() const {
  uint32_t out = 0;
  for (size_t i = 0; i < parts.size(); ++i) out |= static_cast<uint32_t>(parts[i].bytes > 0) << i;
  return out;
}

Hash128 first_hash(const Root& root, const Salt& salt) {
  struct {
    Root root;
    Salt salt;
  } const all{root, salt};
  return half_sha256(bytes_of_value(all));
}

Hash128 next_hash(const Hash128& before, std::span<const int32_t> tokens) {
  std::array<std::byte, sizeof(Hash128) + kPageIds * sizeof(int32_t)> all;
  const auto ids = std::as_bytes(tokens.first(std::min(tokens.size(), kPageIds)));
  std::memcpy(all.data(), &before, sizeof before);
  std::memcpy(all.data() + sizeof before, ids.data(), ids.size());
  return half_sha256(std::span(all).first(sizeof before + ids.size()));
}

uint64_t checksum_of(std::span<const std::byte> part, const Hash128& prefix, size_t group) {
  return hash64(part, prefix.low ^ prefix.high ^ group);
}

void seal(Entry& entry) {
  entry.magic = kMagic;
  entry.version = kVersion;
  entry.checksum = hash64(sealed_part(entry));
}

EntryState check(const Entry& entry, const Root& root) {
  if (entry.magic != kMagic || entry.checksum != hash64(sealed_part(entry)))
    return EntryState::damaged;
  if (entry.version != kVersion || !(entry.root == root)) return EntryState::foreign;
  if (entry.n_tokens == 0 || entry.n_tokens > kPageIds) return EntryState::damaged;
  for (const Part& part : entry.parts)
    if (part.bytes > kMaxPartBytes) return EntryState::damaged;
  if (entry.offset > UINT64_MAX / 2 || !(next_hash(entry.before, entry.ids()) == entry.prefix))
    return EntryState::damaged;
  return EntryState::good;
}

}  // namespace millrace::disk
