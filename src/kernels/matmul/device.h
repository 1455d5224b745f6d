// The device variants' launchers, callable from plain C++. A launcher returns a cudaError_t as int.
#pragma once

#include "kernels/matmul/args.h"
#include "kernels/tile_shape.h"

namespace millrace::matmul {

bool takes_sm80_rows(const Args& args);
int launch_sm80_rows(const Args& args, void* stream, void* workspace);
TileShape tiles_sm80_rows(const Args& args, int n_sms);

bool takes_sm80_rows_packed(const Args& args);
int launch_sm80_rows_packed(const Args& args, void* stream, void* workspace);

bool takes_sm80_batch(const Args& args);
int launch_sm80_batch(const Args& args, void* stream, void* workspace);
TileShape tiles_sm80_batch(const Args& args, int n_sms);

bool takes_sm80_tiles(const Args& args);
int launch_sm80_tiles(const Args& args, void* stream, void* workspace);
TileShape tiles_sm80_tiles(const Args& args, int n_sms);

}  // namespace millrace::matmul
