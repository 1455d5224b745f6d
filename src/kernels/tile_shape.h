// What a variant cuts a call into, as far as steps in its time follow from it: 'millrace lab
// cliffs' predicts them. A trait beside the Variant, for those that declare it. Compiled by g++ and
// nvcc.
#pragma once

namespace millrace {

struct TileShape {
  long long rows = 0;       // of the batch that are computed together; 0: not declared
  long long n_blocks = 0;   // that a device starts for the call; 0: lanes take tiles in a loop
  int blocks_per_unit = 1;  // that a multiprocessor holds at once
};

struct Op;
struct Variant;

// How such a call of the variant is cut up on a device of so many multiprocessors (a CPU: lanes).
// Pure; nothing where the variant declares nothing.
TileShape tiles_of(const Op& op, const Variant& variant, const void* args, int n_units);

}  // namespace millrace
