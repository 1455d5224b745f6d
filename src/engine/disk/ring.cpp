#include "engine/disk/ring.h"

#include <liburing.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "base/check.h"
#include "engine/disk/files.h"

namespace millrace::disk {
namespace {

constexpr unsigned kDepth = 32;
constexpr size_t kMostBytes = size_t{1} << 30;  // of one call

// What is left of one after `done` bytes, by calls that wait.
void finish(Transfer& transfer, size_t done) {
  while (done < transfer.bytes && transfer.problem == 0) {
    std::byte* at = transfer.data + done;
    const size_t left = std::min(transfer.bytes - done, kMostBytes);
    const auto offset = static_cast<off_t>(transfer.offset + done);
    const ssize_t n = transfer.kind == Transfer::Kind::read
                          ? pread(transfer.file, at, left, offset)
                          : pwrite(transfer.file, at, left, offset);
    if (n > 0)
      done += static_cast<size_t>(n);
    else if (n == 0)
      transfer.problem = ENODATA;
    else if (errno != EINTR)
      transfer.problem = errno;
  }
}

}  // namespace

struct Ring::Impl {
  io_uring ring;
};

Ring::Ring(bool wants_uring) {
  if (!wants_uring) return;
  auto impl = std::make_unique<Impl>();
  if (io_uring_queue_init(kDepth, &impl->ring, 0) == 0) impl_ = std::move(impl);
}

Ring::~Ring() {
  if (impl_) io_uring_queue_exit(&impl_->ring);
}

void Ring::run(std::span<Transfer> transfers) {
  for (Transfer& transfer : transfers) transfer.problem = 0;
  if (!impl_) {
    for (Transfer& transfer : transfers) finish(transfer, 0);
    return;
  }
  while (!transfers.empty()) {
    const auto some = transfers.first(std::min<size_t>(transfers.size(), kDepth));
    transfers = transfers.subspan(some.size());
    std::array<int, kDepth> done{};
    for (size_t i = 0; i < some.size(); ++i) {
      const Transfer& one = some[i];
      io_uring_sqe* entry = io_uring_get_sqe(&impl_->ring);
      const auto n = static_cast<unsigned>(std::min(one.bytes, kMostBytes));
      if (one.kind == Transfer::Kind::read)
        io_uring_prep_read(entry, one.file, one.data, n, one.offset);
      else
        io_uring_prep_write(entry, one.file, one.data, n, one.offset);
      io_uring_sqe_set_data64(entry, i);
    }
    size_t n_over = 0;
    while (n_over < some.size()) {
      const int waited = io_uring_submit_and_wait(&impl_->ring, 1);
      // What was handed over may still be written to: there is no way back from here.
      MILLRACE_CHECK(waited >= 0 || waited == -EINTR || waited == -EAGAIN || waited == -EBUSY,
                     "io_uring failed with {}", waited);
      io_uring_cqe* end = nullptr;
      while (io_uring_peek_cqe(&impl_->ring, &end) == 0) {
        done[io_uring_cqe_get_data64(end)] = end->res;
        io_uring_cqe_seen(&impl_->ring, end);
        ++n_over;
      }
    }
    // What came back short or was turned away is finished by calls that wait.
    for (size_t i = 0; i < some.size(); ++i) {
      const bool is_again = done[i] == -EINTR || done[i] == -EAGAIN || done[i] == -EINVAL;
      if (done[i] < 0 && !is_again)
        some[i].problem = -done[i];
      else
        finish(some[i], static_cast<size_t>(std::max(done[i], 0)));
    }
  }
}

}  // namespace millrace::disk
