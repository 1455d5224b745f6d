// How many rows each variant of the product takes at once: what it declares to lab cliffs.
#pragma once

#include <string_view>

#include "kernels/matmul/args.h"
#include "kernels/tile_shape.h"

namespace millrace::matmul {

TileShape declared_tiles(std::string_view variant, const Args& args, int n_units);

}  // namespace millrace::matmul
