#include "engine/disk/survey.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "base/utf8.h"
#include "engine/disk/record.h"
#include "files/small_file.h"

namespace millrace::disk {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMaxNameBytes = 1024;

// A root is 32 hexadecimal digits.
bool is_root(const std::string& name) {
  return name.size() == 32 && name.find_first_not_of("0123456789abcdef") == std::string::npos;
}

bool is_held(const fs::path& folder) {
  const int fd = open((folder / kLockName).c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
  if (fd < 0) return false;
  const bool held = flock(fd, LOCK_EX | LOCK_NB) != 0;
  close(fd);
  return held;
}

void read_entries(const fs::path& file, FolderFacts& facts) {
  std::ifstream stream(file, std::ios::binary);
  Entry entry;
  while (stream.read(reinterpret_cast<char*>(&entry), sizeof entry)) {
    if (entry.magic == 0 && entry.checksum == 0) continue;  // given back
    const bool is_good = check(entry, entry.root) == EntryState::good;
    facts.n_damaged += !is_good;
    if (!is_good) continue;
    ++facts.n_records;
    facts.n_tokens += entry.n_tokens;
    facts.oldest_s =
        facts.oldest_s == 0 ? entry.written_s : std::min(facts.oldest_s, entry.written_s);
    facts.newest_s = std::max(facts.newest_s, entry.written_s);
  }
}

FolderFacts look_at(const fs::path& folder) {
  FolderFacts out;
  out.name = folder.filename();
  out.is_held = is_held(folder);
  std::error_code failed;
  for (const auto& file : fs::directory_iterator(folder, failed)) {
    if (!file.is_regular_file(failed) || file.is_symlink(failed)) continue;
    struct stat facts {};
    if (lstat(file.path().c_str(), &facts) == 0) out.bytes += bytes_on_disk(facts);
    if (file.path().extension() == ".ids") read_entries(file.path(), out);
  }
  if (auto text = read_small_file(folder / kNameFile, kMaxNameBytes + 1); text.ok())
    out.model = printable(text->substr(0, text->find('\n')));
  return out;
}

}  // namespace

Result<std::vector<FolderFacts>> survey(const std::string& parent) {
  std::vector<FolderFacts> out;
  std::error_code failed;
  for (const auto& folder : fs::directory_iterator(parent, failed))
    if (is_root(folder.path().filename()) && !folder.is_symlink() && folder.is_directory())
      out.push_back(look_at(folder.path()));
  if (failed && failed != std::errc::no_such_file_or_directory)
    return error(Code::io_error, "cannot read the folder '{}': {}", parent, failed.message());
  std::sort(out.begin(), out.end(),
            [](const auto& a, const auto& b) { return a.newest_s < b.newest_s; });
  return out;
}

Status remove_folder(const std::string& parent, const std::string& name) {
  MILLRACE_ASSIGN(const Folder folder, open_folder(parent, name));
  MILLRACE_ASSIGN(const auto listed, folder.files->list());
  for (const Files::Listed& file : listed)
    if (file.name != kLockName) MILLRACE_TRY(folder.files->remove(file.name));
  MILLRACE_TRY(folder.files->remove(kLockName));
  if (rmdir(folder.path.c_str()) != 0)
    return error(Code::io_error, "cannot remove '{}': something else is in it", folder.path);
  return {};
}

Status name_folder(Files& files, const std::string& model) {
  MILLRACE_TRY(files.remove(kNameFile));
  MILLRACE_ASSIGN(const int file, files.create(kNameFile));
  std::string line = model.substr(0, kMaxNameBytes) + "\n";
  Transfer write{.kind = Transfer::Kind::write,
                 .file = file,
                 .data = reinterpret_cast<std::byte*>(line.data()),
                 .bytes = line.size()};
  files.run({&write, 1});
  files.close(file);
  if (write.problem != 0) return error(Code::io_error, "cannot name the folder of {}", model);
  return {};
}

}  // namespace millrace::disk
