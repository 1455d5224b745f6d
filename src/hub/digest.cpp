#include "hub/digest.h"

#include <fcntl.h>
#include <openssl/evp.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <memory>
#include <vector>

namespace millrace {
namespace {

constexpr size_t kBlockBytes = 1 << 20;

using Context = std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)>;

std::string hex_of(const unsigned char* bytes, unsigned n) {
  std::string out;
  for (unsigned i = 0; i < n; ++i) out += fmt::format("{:02x}", bytes[i]);
  return out;
}

Status start(EVP_MD_CTX* context, int fd, DigestKind kind) {
  const EVP_MD* method = kind == DigestKind::sha256 ? EVP_sha256() : EVP_sha1();
  bool is_ready = context != nullptr && EVP_DigestInit_ex(context, method, nullptr) == 1;
  if (is_ready && kind == DigestKind::git_blob) {
    struct stat info {};
    fstat(fd, &info);
    const std::string head = fmt::format("blob {}", info.st_size);
    is_ready = EVP_DigestUpdate(context, head.c_str(), head.size() + 1) == 1;
  }
  return is_ready ? Status()
                  : error(Code::unsupported, "OpenSSL cannot compute checksums on this machine");
}

Result<std::string> digest_of(int fd, const std::string& path, DigestKind kind,
                              const std::function<bool()>& stopped) {
  const Context context(EVP_MD_CTX_new(), EVP_MD_CTX_free);
  MILLRACE_TRY(start(context.get(), fd, kind));
  std::vector<char> block(kBlockBytes);
  for (;;) {
    if (stopped()) return error(Code::cancelled, "interrupted");
    const ssize_t n = read(fd, block.data(), block.size());
    if (n < 0) return error(Code::io_error, "cannot read {}: {}", path, std::strerror(errno));
    if (n == 0) break;
    EVP_DigestUpdate(context.get(), block.data(), static_cast<size_t>(n));
  }
  unsigned char bytes[EVP_MAX_MD_SIZE];
  unsigned n_bytes = 0;
  EVP_DigestFinal_ex(context.get(), bytes, &n_bytes);
  return hex_of(bytes, n_bytes);
}

}  // namespace

bool is_checksum(DigestKind kind, std::string_view hex) {
  return hex.size() == (kind == DigestKind::sha256 ? 64 : 40) &&
         hex.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

Result<std::string> digest_of_file(const std::string& path, DigestKind kind,
                                   const std::function<bool()>& stopped) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return error(Code::io_error, "cannot open {}: {}", path, std::strerror(errno));
  auto hex = digest_of(fd, path, kind, stopped);
  close(fd);
  return hex;
}

Sha256 sha256(std::span<const std::byte> bytes) {
  Sha256 out;
  const bool done =
      EVP_Digest(bytes.data(), bytes.size(), out.data(), nullptr, EVP_sha256(), nullptr) == 1;
  MILLRACE_CHECK(done, "OpenSSL has no SHA-256");
  return out;
}

std::string sha256_of(std::string_view text) {
  const Sha256 digest = sha256(std::as_bytes(std::span(text)));
  return hex_of(digest.data(), digest.size());
}

}  // namespace millrace
