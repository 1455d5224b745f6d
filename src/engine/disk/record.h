// How one page of a context lies on disk. A segment is two files: `N.ids`, entries of one size that
// say whose page it is, and `N.kv`, the pages. So an index is rebuilt from the entries alone. An
// entry is sealed by a checksum and has one for each part of its page; whatever does not fit is a
// miss. Little-endian, as everything that millrace runs on.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/hash.h"
#include "hub/digest.h"

namespace millrace::disk {

inline constexpr size_t kPageIds = 64;  // tokens of a page
inline constexpr size_t kMaxParts = 4;  // groups of layers
inline constexpr size_t kEntryBytes = 512;

// Whose contexts these are: any difference is a miss.
struct Root {
  Hash128 model = {};    // weights, numerics, KV type, page size, rope: Engine::root()
  Hash128 adapter = {};  // none: zeros
  bool operator==(const Root&) const = default;
};

Root root_of(std::string_view engine_root);

using Salt = Sha256;  // of what keeps tenants apart
Salt salt_of(std::string_view text);

struct Part {
  uint64_t bytes = 0;  // 0: this group's page is not here
  uint64_t checksum = 0;
};

struct Entry {
  uint64_t magic = 0;
  uint32_t version = 0;
  uint32_t n_tokens = 0;  // fewer than kPageIds: the open page at a turn's end
  Root root = {};
  Salt salt = {};
  Hash128 before = {};  // of the root and all tokens before this page
  Hash128 prefix = {};  // the same with this page's own
  int64_t written_s = 0;
  uint64_t offset = 0;  // of the parts, one after the other, in the segment's pages
  std::array<Part, kMaxParts> parts = {};
  std::array<int32_t, kPageIds> tokens = {};
  uint64_t day_bytes = 0;  // written on the day of written_s (UTC), up to the end of this one
  std::array<uint8_t, 48> reserved = {};
  uint64_t checksum = 0;  // of all before it

  std::span<const int32_t> ids() const { return std::span(tokens).first(n_tokens); }
  uint64_t payload_bytes() const;
  uint32_t groups() const;  // a bit for each part that is here
};
static_assert(sizeof(Entry) == kEntryBytes);

// The hash of no tokens yet, and of those before and some more. Half a SHA-256: of what lies before
// a page nothing else is compared, and who sends prompts chooses the tokens (of XXH3 two pages with
// one hash are found in a second).
Hash128 first_hash(const Root& root, const Salt& salt);
Hash128 next_hash(const Hash128& before, std::span<const int32_t> tokens);

// Seeded by whose it is: another record's bytes are damaged ones.
uint64_t checksum_of(std::span<const std::byte> part, const Hash128& prefix, size_t group);

void seal(Entry& entry);  // magic, version, checksum

enum class EntryState : unsigned char { good, damaged, foreign };
// Whether these bytes are an entry, whole, of this root, and say nothing that cannot be.
EntryState check(const Entry& entry, const Root& root);

}  // namespace millrace::disk
