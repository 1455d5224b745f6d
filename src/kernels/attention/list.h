// What a list of work holds, as host and device read it: first the shares, then as many cuts, then
// a tile for every row at most. A tile is some neighbouring rows of one sequence; its work is, for
// every KV head, its chunks in ascending order. The chunks of all heads of all tiles form one line,
// which the shares cut into runs of neighbours. Plain structs of ints, no std headers.
#pragma once

namespace millrace::attention {

inline constexpr int kListChunk = 256;   // tokens
inline constexpr int kTileVectors = 32;  // query vectors of a tile at most
// A batch of so few rows has tiles of one column alone, where a row has no more vectors than that:
// its kernel is smaller, and can begin beside the one before it.
inline constexpr int kFewRows = 8;
inline constexpr int kColumnVectors = 8;

inline bool has_one_column(long long n_rows, long long group) {
  return n_rows <= kFewRows && group <= kColumnVectors;
}

struct ListShare {
  int tile, kv_head, chunk;  // where it begins; the chunk counted from the tile's first
  int n_chunks;              // of its tile and those that follow; 0: nothing to do
  int first_cut, last_cut;   // the cut that it begins or ends with, or -1
  int unused[2];
};

// One KV head of a tile whose chunks fall to several shares. The share that begins it folds its own
// chunks into one result; the others keep theirs apart, since a fold runs from the first on.
struct ListCut {
  int n_done;       // chunks whose results are there; zero before and after a call
  int head_chunks;  // of the share that begins it
  int record;       // first of its results: that of the head, then one a chunk, each of as many
                    // records as its tile has query vectors, rounded up to an even number
  int unused;
};

// Tokens are counted from their sequence's first.
struct ListTile {
  int row, n_rows;  // none of padding
  int sequence;
  int first, last;          // tokens that some of its rows see; every page between is seen by one
  int first_all, last_all;  // tokens that all of its rows see; none where first_all > last_all
  int columns;              // of eight query vectors that hold its own: 1 or 4
};

inline constexpr int kShareInts = 8, kCutInts = 4, kTileInts = 8;

}  // namespace millrace::attention
