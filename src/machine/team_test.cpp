#include "machine/team.h"

#include <gtest/gtest.h>
#include <immintrin.h>

#include <atomic>
#include <vector>

#include "machine/count_allocations_test.h"
#include "machine/cpu.h"

namespace millrace {
namespace {

// Every lane writes its own cell, then reads all the others' after the barrier.
void expect_lanes_meet(Team& team, int n_rounds) {
  std::vector<int> cells(static_cast<size_t>(team.size()), -1);
  std::atomic<int> n_wrong{0};
  team.run([&](Lane& lane) {
    for (int round = 0; round < n_rounds; ++round) {
      cells[static_cast<size_t>(lane.index)] = round;
      lane.sync();
      for (int cell : cells)
        if (cell != round) ++n_wrong;
      lane.sync();
    }
  });
  EXPECT_EQ(n_wrong, 0) << team.size() << " lanes";
}

TEST(TeamThreads, LanesMeetAtEveryCount) {
  for (int n_lanes : {1, 2, 3, 4, 5, 7, 8, 13}) {
    Team team(n_lanes);
    ASSERT_EQ(team.size(), n_lanes);
    expect_lanes_meet(team, 50);
  }
}

TEST(TeamThreads, PinnedLanesMeet) {
  const std::vector<int> cpus = cpus_allowed_by_affinity();
  Team team(static_cast<int>(cpus.size()), cpus);
  expect_lanes_meet(team, 2000);
}

TEST(TeamThreads, RunsAgainAfterItsLanesParked) {
  Team team(2);
  for (int i = 0; i < 3; ++i) {
    expect_lanes_meet(team, 3);
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
}

TEST(TeamThreads, ALateLaneIsWaitedFor) {
  Team team(2);
  std::atomic<bool> slept{false};
  bool seen = false;
  team.run([&](Lane& lane) {
    if (lane.index == 1) {
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
      slept = true;
    }
    lane.sync();
    if (lane.index == 0) seen = slept;
  });
  EXPECT_TRUE(seen);
}

TEST(TeamThreads, UnusedTeamsEndCleanly) {
  for (int i = 0; i < 20; ++i) Team team(4);
}

TEST(TeamThreads, AllocatesNothingPerRun) {
  Team team(3);
  int64_t sum[3] = {};
  const auto body = [&](Lane& lane) {
    lane.sync();
    ++sum[lane.index];
  };
  team.run(body);
  const int64_t before = n_allocations();
  for (int i = 0; i < 100; ++i) team.run(body);
  EXPECT_EQ(n_allocations(), before);
  EXPECT_EQ(sum[2], 101);
}

TEST(TeamThreads, OneMxcsrOnEveryLaneAndTheCallersComesBack) {
  Team team(2);
  constexpr unsigned kFlushToZero = 0x9fc0;
  const unsigned before = _mm_getcsr();
  _mm_setcsr(kFlushToZero);
  unsigned seen[2] = {};
  team.run([&](Lane& lane) { seen[lane.index] = _mm_getcsr(); });
  const unsigned after = _mm_getcsr();
  _mm_setcsr(before);
  EXPECT_EQ(seen[0], kLaneMxcsr);
  EXPECT_EQ(seen[1], kLaneMxcsr);
  EXPECT_EQ(after, kFlushToZero);
}

TEST(TeamThreads, PinsItsLanesAndPutsTheCallersAffinityBack) {
  const std::vector<int> cpus = cpus_allowed_by_affinity();
  const int n_lanes = static_cast<int>(cpus.size());
  std::vector<std::vector<int>> seen(cpus.size());
  {
    Team team(n_lanes, cpus);
    team.run(
        [&](Lane& lane) { seen[static_cast<size_t>(lane.index)] = cpus_allowed_by_affinity(); });
  }
  for (size_t i = 0; i < cpus.size(); ++i) EXPECT_EQ(seen[i], std::vector<int>{cpus[i]});
  EXPECT_EQ(cpus_allowed_by_affinity(), cpus);
}

TEST(TeamThreads, MoreLanesThanCpusToPinToAreNotPinned) {
  const std::vector<int> cpus = cpus_allowed_by_affinity();
  Team team(static_cast<int>(cpus.size()) + 1, cpus);
  expect_lanes_meet(team, 100);
  EXPECT_EQ(cpus_allowed_by_affinity(), cpus);
}

TEST(Share, CoversEveryItemOnceInGrains) {
  for (int64_t n : {0, 1, 7, 64, 100})
    for (int count : {1, 2, 3, 8})
      for (int64_t grain : {1, 4, 16}) {
        int64_t next = 0;
        for (int lane = 0; lane < count; ++lane) {
          const Share share = share_of(n, lane, count, grain);
          EXPECT_EQ(share.begin, next);
          EXPECT_TRUE(share.begin % grain == 0 || share.begin == n);
          next = share.end;
        }
        EXPECT_EQ(next, n);
      }
}

}  // namespace
}  // namespace millrace
