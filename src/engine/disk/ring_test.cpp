#include "engine/disk/ring.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cerrno>
#include <vector>

#include "engine/disk/files.h"
#include "engine/disk/temporary_folder_test.h"

namespace millrace::disk {
namespace {

// More transfers than the ring is deep, and what the system refuses: the same both ways.
void write_and_read(bool wants_uring) {
  const TemporaryFolder folder;
  const int file = open((folder.path() + "/file").c_str(), O_RDWR | O_CREAT, 0600);
  ASSERT_GE(file, 0);
  constexpr size_t kBytes = 1000, kTransfers = 100;
  std::vector<std::byte> out(kBytes * kTransfers), in(out.size());
  for (size_t i = 0; i < out.size(); ++i) out[i] = static_cast<std::byte>(i * 7 + i / 256);
  std::vector<Transfer> transfers;
  for (size_t i = 0; i < kTransfers; ++i)
    transfers.push_back({Transfer::Kind::write, file, i * kBytes, out.data() + i * kBytes, kBytes});
  Ring ring(wants_uring);
  ring.run(transfers);
  for (size_t i = 0; i < kTransfers; ++i) {
    EXPECT_EQ(transfers[i].problem, 0);
    transfers[i].kind = Transfer::Kind::read;
    transfers[i].data = in.data() + i * kBytes;
  }
  ring.run(transfers);
  EXPECT_EQ(in, out);
  Transfer bad[] = {{Transfer::Kind::read, file, out.size() - 10, in.data(), kBytes},
                    {Transfer::Kind::read, -1, 0, in.data(), kBytes},
                    {Transfer::Kind::write, file, 0, out.data(), 0}};
  ring.run(bad);
  EXPECT_EQ(bad[0].problem, ENODATA);
  EXPECT_EQ(bad[1].problem, EBADF);
  EXPECT_EQ(bad[2].problem, 0);
  close(file);
}

TEST(DiskRing, reads_what_it_wrote) {
  if (!Ring().is_uring()) GTEST_SKIP() << "this system refuses io_uring";
  write_and_read(true);
}

TEST(DiskRing, does_so_without_io_uring) {
  write_and_read(false);
}

}  // namespace
}  // namespace millrace::disk
