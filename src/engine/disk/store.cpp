#include "engine/disk/store.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <ctime>
#include <utility>

namespace millrace::disk {
namespace {

constexpr uint64_t kLeastSegment = uint64_t{1} << 20, kMostSegment = uint64_t{1} << 30;
constexpr uint64_t kSegments = 32;  // that a full store has, about
constexpr int64_t kDayS = 86400;
constexpr size_t kScanEntries = 2048;  // read at once: a megabyte

std::string name_of(uint64_t segment, const char* ending) {
  return fmt::format("{:08}{}", segment, ending);
}

// Of "00000012.ids": a name that name_of() gives, and no number that cannot be counted on from.
std::optional<uint64_t> number_of(const std::string& name, const char* ending) {
  uint64_t number = 0;
  std::from_chars(name.data(), name.data() + name.size(), number);
  if (number == 0 || number > UINT64_MAX / 2 || name != name_of(number, ending)) return {};
  return number;
}

uint32_t common(std::span<const int32_t> a, std::span<const int32_t> b) {
  return static_cast<uint32_t>(std::mismatch(a.begin(), a.end(), b.begin(), b.end()).first -
                               a.begin());
}

bool is_unknown(const Transfer& transfer) {
  return transfer.problem != 0;
}

}  // namespace

bool Store::ByPlace::is_less(const Place& a, const Place& b) {
  if (a.before.high != b.before.high) return a.before.high < b.before.high;
  if (a.before.low != b.before.low) return a.before.low < b.before.low;
  return std::lexicographical_compare(a.ids.begin(), a.ids.end(), b.ids.begin(), b.ids.end());
}

Store::Store(Files& files, const StoreOptions& options) : files_(files), options_(options) {}

Store::~Store() {
  close_segment();
}

Result<std::unique_ptr<Store>> Store::open(Files& files, const StoreOptions& options) {
  StoreOptions whole = options;
  if (whole.segment_bytes == 0)
    whole.segment_bytes = std::clamp(whole.max_bytes / kSegments, kLeastSegment, kMostSegment);
  std::unique_ptr<Store> out(new Store(files, whole));
  MILLRACE_TRY(out->scan());
  MILLRACE_TRY(out->make_room(0));
  return out;
}

Status Store::scan() {
  MILLRACE_ASSIGN(const auto listed, files_.list());
  note_day();
  std::map<uint64_t, Files::Listed> pages, ids;
  for (const Files::Listed& file : listed) {
    if (const auto number = number_of(file.name, ".kv")) pages[*number] = file;
    if (const auto number = number_of(file.name, ".ids")) ids[*number] = file;
  }
  for (const auto& [number, file] : pages) {
    segments_[number].bytes += file.disk_bytes;
    last_number_ = std::max(last_number_, number);
  }
  for (const auto& [number, file] : ids) {
    segments_[number].bytes += file.disk_bytes;
    last_number_ = std::max(last_number_, number);
    scan_segment(number, pages.contains(number) ? pages[number].bytes : 0);
  }
  for (const auto& [number, segment] : segments_) counts_.bytes += segment.bytes;
  return {};
}

// What cannot be read is a segment without records: it goes when room is needed.
void Store::scan_segment(uint64_t number, uint64_t page_bytes) {
  auto file = files_.open(name_of(number, ".ids"));
  if (!file.ok()) return;
  std::vector<Entry> entries(kScanEntries);
  // No segment of ours has more: a file of nothing but zeros comes to an end too.
  const uint64_t n_most = options_.max_records + kScanEntries;
  for (uint64_t at = 0; at < n_most * kEntryBytes; at += kScanEntries * kEntryBytes) {
    // A read past the end says so and leaves what is before it: cleared first, so that the rest
    // counts as nothing.
    std::memset(static_cast<void*>(entries.data()), 0, entries.size() * kEntryBytes);
    Transfer read{.file = file.value(),
                  .offset = at,
                  .data = reinterpret_cast<std::byte*>(entries.data()),
                  .bytes = entries.size() * kEntryBytes};
    files_.run({&read, 1});
    for (size_t i = 0; i < entries.size(); ++i) {
      const Entry& entry = entries[i];
      if (entry.magic == 0 && entry.checksum == 0) continue;  // past the end, or given back
      EntryState state = check(entry, options_.root);
      if (state == EntryState::good && entry.offset + entry.payload_bytes() > page_bytes)
        state = EntryState::damaged;
      counts_.n_damaged += state == EntryState::damaged;
      counts_.n_foreign += state == EntryState::foreign;
      if (state != EntryState::good) continue;
      add(entry, number, at / kEntryBytes + i);
      if (entry.written_s / kDayS == day_)
        written_today_ = std::max(written_today_, entry.day_bytes);
    }
    if (read.problem != 0) break;
  }
  files_.close(file.value());
}

// Under the lock, or before anybody else knows of the store.
Store::Record* Store::add(const Entry& entry, uint64_t segment, uint64_t index) {
  const bool is_one_too_many =
      records_.size() >= options_.max_records && !records_.contains(entry.prefix);
  if (!is_one_too_many) forget_beginnings(entry);
  if (is_one_too_many || records_.contains(entry.prefix)) {
    note_dead(extent_of(entry, segment, index));
    return nullptr;
  }
  const auto record =
      records_
          .emplace(
              entry.prefix,
              Record{.entry = entry, .segment = segment, .index = index, .used_s = entry.written_s})
          .first;
  in_order_.insert(&record->second.entry);
  Segment& in = segments_[segment];
  in.records.push_back(entry.prefix);
  ++in.n_live;
  if (is_by_worth()) note_leaf(record->second);
  in.used = ++n_uses_;
  in.first_s = in.first_s == 0 ? entry.written_s : std::min(in.first_s, entry.written_s);
  in.last_s = std::max(in.last_s, entry.written_s);
  return &record->second;
}

// What it takes the place of, and shorter ends of the same page, are never asked for again.
// Whatever stands between a beginning of these tokens and the tokens has that beginning too.
void Store::forget_beginnings(const Entry& entry) {
  for (auto ids = entry.ids(); !ids.empty();) {
    const auto after = in_order_.upper_bound(Place{entry.before, ids});
    if (after == in_order_.begin()) return;
    const Entry& had = **std::prev(after);
    if (!(had.before == entry.before)) return;
    const uint32_t n = common(had.ids(), ids);
    const bool is_beginning = n == had.n_tokens;
    if (is_beginning && (had.groups() & ~entry.groups()) == 0) forget(had.prefix);
    ids = ids.first(is_beginning ? n - 1 : n);
  }
}

void Store::forget(const Hash128& prefix) {
  const auto it = records_.find(prefix);
  if (it == records_.end()) return;
  const Hash128 before = it->second.entry.before;
  in_order_.erase(&it->second.entry);
  --segments_[it->second.segment].n_live;
  leave_leaves(it->second);
  note_dead(it->second.extent());
  records_.erase(it);
  if (const auto parent = records_.find(before); is_by_worth() && parent != records_.end())
    note_leaf(parent->second);
}

std::optional<Store::Found> Store::find(const Hash128& before, std::span<const int32_t> tokens,
                                        const Use& use) {
  const auto wanted = tokens.first(std::min(tokens.size(), kPageIds));
  const std::lock_guard lock(mutex_);
  const Entry* best = nullptr;
  uint32_t most = 0;
  const auto consider = [&](const Entry* entry) {
    const uint32_t n = entry->before == before ? common(wanted, entry->ids()) : 0;
    if (n > most) best = entry;
    most = std::max(most, n);
  };
  const auto at = in_order_.lower_bound(Place{before, wanted});
  if (at != in_order_.end()) consider(*at);
  if (at != in_order_.begin()) consider(*std::prev(at));
  if (best == nullptr) return {};
  Record& record = records_.at(best->prefix);
  segments_[record.segment].used = ++n_uses_;
  record.used_s = now_s();
  record.uses.add(use);
  return Found{best->prefix, most, best->n_tokens, best->groups(), best->tokens};
}

bool Store::has(const Hash128& prefix, uint32_t groups) const {
  const std::lock_guard lock(mutex_);
  const auto it = records_.find(prefix);
  return it != records_.end() && (groups & ~it->second.entry.groups()) == 0;
}

int64_t Store::now_s() const {
  return options_.now_s ? options_.now_s() : static_cast<int64_t>(time(nullptr));
}

void Store::note_day() {
  const int64_t today = now_s() / kDayS;
  if (today == day_) return;
  day_ = today;
  written_today_ = 0;
}

// Before it is tried: what fails may have worn the drive too. Returns what was written before.
uint64_t Store::note_written(uint64_t bytes) {
  const std::lock_guard lock(mutex_);
  note_day();
  return std::exchange(written_today_, written_today_ + bytes);
}

bool Store::may_write(uint64_t bytes) {
  const std::lock_guard lock(mutex_);
  note_day();
  return written_today_ + bytes + kEntryBytes <= options_.daily_bytes;
}

// Never the one that is written, unless it is the only one.
uint64_t Store::least_used() const {
  const std::lock_guard lock(mutex_);
  uint64_t out = 0, used = UINT64_MAX;
  for (const auto& [number, segment] : segments_)
    if (segment.used < used && (number != open_.number || segments_.size() == 1)) {
      used = segment.used;
      out = number;
    }
  return out;
}

// It counts until its files are gone: those that cannot be removed still take room.
Status Store::drop(uint64_t number) {
  if (number == open_.number) close_segment();
  {
    const std::lock_guard lock(mutex_);
    for (const Hash128& prefix : std::exchange(segments_[number].records, {})) {
      const auto it = records_.find(prefix);
      if (it == records_.end() || it->second.segment != number) continue;
      forget(prefix);
      ++counts_.n_dropped;
    }
    std::erase_if(dead_, [&](const Extent& one) { return one.segment == number; });
  }
  MILLRACE_TRY(files_.remove(name_of(number, ".ids")));
  MILLRACE_TRY(files_.remove(name_of(number, ".kv")));
  const std::lock_guard lock(mutex_);
  counts_.bytes -= segments_[number].bytes;
  segments_.erase(number);
  return {};
}

Status Store::make_room(uint64_t bytes) {
  const auto lacks_room = [&] {
    const std::lock_guard lock(mutex_);
    return !segments_.empty() &&
           (counts_.bytes + bytes > options_.max_bytes || records_.size() >= options_.max_records);
  };
  if (is_by_worth() && lacks_room()) MILLRACE_TRY(give_back_dead());
  while (lacks_room()) MILLRACE_TRY(is_by_worth() ? drop_least() : drop(least_used()));
  return {};
}

void Store::close_segment() {
  if (open_.ids >= 0) files_.close(open_.ids);
  if (open_.pages >= 0) files_.close(open_.pages);
  open_ = {};
}

Status Store::need_segment(uint64_t bytes) {
  if (open_.number != 0 && open_.n_page_bytes + bytes > options_.segment_bytes) close_segment();
  if (open_.number != 0) return {};
  const uint64_t number = ++last_number_;
  MILLRACE_ASSIGN(open_.pages, files_.create(name_of(number, ".kv")));
  auto ids = files_.create(name_of(number, ".ids"));
  if (!ids.ok()) {
    close_segment();
    const Status removed = files_.remove(name_of(number, ".kv"));
    return removed.ok() ? ids.status() : removed;
  }
  open_.ids = ids.value();
  open_.number = number;
  const std::lock_guard lock(mutex_);
  segments_[number].used = ++n_uses_;
  return {};
}

Status Store::write(std::span<Writing* const> records) {
  uint64_t bytes = 0;
  for (const Writing* one : records) bytes += one->entry.payload_bytes() + kEntryBytes;
  if (bytes > options_.max_bytes)
    return error(Code::unavailable, "{} bytes are more than the disk budget of {}", bytes,
                 options_.max_bytes);
  MILLRACE_TRY(make_room(bytes));
  MILLRACE_TRY(need_segment(bytes));
  uint64_t day_bytes = note_written(bytes);
  transfers_.clear();
  const uint64_t first_index = open_.n_entries;
  for (Writing* one : records) {
    Entry& entry = one->entry;
    entry.root = options_.root;
    entry.offset = open_.n_page_bytes;
    std::byte* at = one->payload;
    for (size_t i = 0; i < kMaxParts; at += entry.parts[i++].bytes)
      entry.parts[i].checksum = checksum_of({at, entry.parts[i].bytes}, entry.prefix, i);
    entry.written_s = now_s();
    entry.day_bytes = day_bytes += entry.payload_bytes() + kEntryBytes;
    seal(entry);
    transfers_.push_back({.kind = Transfer::Kind::write,
                          .file = open_.pages,
                          .offset = open_.n_page_bytes,
                          .data = one->payload,
                          .bytes = entry.payload_bytes()});
    transfers_.push_back({.kind = Transfer::Kind::write,
                          .file = open_.ids,
                          .offset = open_.n_entries * kEntryBytes,
                          .data = reinterpret_cast<std::byte*>(&entry),
                          .bytes = kEntryBytes});
    open_.n_page_bytes += entry.payload_bytes();
    ++open_.n_entries;
  }
  const uint64_t number = open_.number;
  files_.run(transfers_);
  const auto bad = std::find_if(transfers_.begin(), transfers_.end(), is_unknown);
  const int problem = bad == transfers_.end() ? 0 : bad->problem;
  {
    const std::lock_guard lock(mutex_);
    segments_[number].bytes += bytes;
    counts_.bytes += bytes;
    if (problem == 0) {
      counts_.bytes_written += bytes;
      for (size_t i = 0; i < records.size(); ++i)
        if (Record* record = add(records[i]->entry, number, first_index + i); record != nullptr)
          record->uses = records[i]->uses;
      return {};
    }
  }
  close_segment();  // what it holds by now is unknown
  drop_if_empty(number);
  return error(Code::io_error, "cannot write: {}", strerror(problem));
}

// So that tries which fail do not add up. Where the files stay, their bytes count.
void Store::drop_if_empty(uint64_t number) {
  {
    const std::lock_guard lock(mutex_);
    if (!segments_[number].records.empty()) return;
  }
  const Status ignored = drop(number);
}

void Store::read(std::span<Reading* const> records) {
  struct Wanted {
    Reading* reading;
    Entry entry;
    int file = -1;
    bool may_be_good = false;  // it could not even be looked at
    size_t first = 0, n = 0;   // transfers
  };
  std::vector<Wanted> wanted;
  transfers_.clear();
  for (Reading* reading : records) {
    reading->is_good = false;
    Wanted one{.reading = reading, .entry = {}};
    uint64_t segment = 0;
    {
      const std::lock_guard lock(mutex_);
      const auto it = records_.find(reading->prefix);
      if (it == records_.end()) continue;
      one.entry = it->second.entry;
      segment = it->second.segment;
    }
    one.first = transfers_.size();
    auto file = files_.open(name_of(segment, ".kv"));
    if (file.ok()) one.file = file.value();
    one.may_be_good = file.status().code() == Code::unavailable;
    uint64_t offset = one.entry.offset;
    for (size_t i = 0; i < kMaxParts && file.ok(); offset += one.entry.parts[i++].bytes) {
      if (reading->to[i] == nullptr) continue;
      if (one.entry.parts[i].bytes != reading->bytes[i]) {
        files_.close(std::exchange(one.file, -1));
        break;
      }
      transfers_.push_back({.kind = Transfer::Kind::read,
                            .file = one.file,
                            .offset = offset,
                            .data = reading->to[i],
                            .bytes = reading->bytes[i]});
    }
    if (one.file < 0) transfers_.resize(one.first);
    one.n = transfers_.size() - one.first;
    wanted.push_back(one);
  }
  files_.run(transfers_);
  for (const Wanted& one : wanted) {
    bool is_good = one.file >= 0;
    uint64_t n_bytes = 0;
    for (size_t i = one.first; i < one.first + one.n; ++i) {
      is_good = is_good && transfers_[i].problem == 0;
      n_bytes += transfers_[i].bytes;
    }
    for (size_t i = 0; i < kMaxParts && is_good; ++i)
      if (one.reading->to[i] != nullptr)
        is_good = checksum_of({one.reading->to[i], one.reading->bytes[i]}, one.entry.prefix, i) ==
                  one.entry.parts[i].checksum;
    if (one.file >= 0) files_.close(one.file);
    one.reading->is_good = is_good;
    const std::lock_guard lock(mutex_);
    counts_.bytes_read += n_bytes;
    if (is_good || one.may_be_good) continue;
    ++counts_.n_bad_reads;
    forget(one.entry.prefix);
  }
}

Store::Counts Store::counts() const {
  const std::lock_guard lock(mutex_);
  Counts out = counts_;
  out.n_records = records_.size();
  out.n_segments = segments_.size();
  for (const auto& [number, segment] : segments_) {
    if (segment.last_s == 0) continue;
    out.oldest_s = out.oldest_s == 0 ? segment.first_s : std::min(out.oldest_s, segment.first_s);
    out.newest_s = std::max(out.newest_s, segment.last_s);
  }
  return out;
}

}  // namespace millrace::disk
