#include "kernels/tile_shape.h"

#include "kernels/kernel.h"
#include "kernels/matmul/declared_tiles.h"

namespace millrace {

TileShape tiles_of(const Op& op, const Variant& variant, const void* args, int n_units) {
  // The ops whose variants declare tiles, in one place.
  if (op.name == "matmul")
    return matmul::declared_tiles(variant.name, *static_cast<const matmul::Args*>(args), n_units);
  return {};
}

}  // namespace millrace
