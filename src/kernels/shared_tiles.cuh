// Device pieces around tensor-core operands in shared memory: copies into it that run beside the
// arithmetic, and loads of 8 x 8 matrices of 16-bit elements out of it. A warp's lane 4 g + t holds
// of such a matrix row g, elements 2 t and 2 t + 1, as one word.
#pragma once

namespace millrace {

__device__ __forceinline__ unsigned shared_address(const void* p) {
  return static_cast<unsigned>(__cvta_generic_to_shared(p));
}

// Sixteen bytes from global to shared memory, both 16-byte aligned; where not live `from` is not
// read and zeros arrive.
__device__ __forceinline__ void copy_async(void* to, const void* from, bool live = true) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(shared_address(to)), "l"(from),
               "r"(live ? 16 : 0)
               : "memory");
}

// Closes a group of this thread's copies, which may be empty.
__device__ __forceinline__ void close_copies() {
  asm volatile("cp.async.commit_group;" ::: "memory");
}

// Waits until all but the last kOpen groups of this thread have arrived.
template <int kOpen>
__device__ __forceinline__ void wait_copies() {
  asm volatile("cp.async.wait_group %0;" ::"n"(kOpen) : "memory");
}

// Four matrices; lane 8 m + r says where row r of matrix m lies, 16-byte aligned.
__device__ __forceinline__ void load_matrices(unsigned (&m)[4], const void* row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(m[0]), "=r"(m[1]), "=r"(m[2]), "=r"(m[3])
               : "r"(shared_address(row))
               : "memory");
}

// The same, each matrix transposed.
__device__ __forceinline__ void load_transposed(unsigned (&m)[4], const void* row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(m[0]), "=r"(m[1]), "=r"(m[2]), "=r"(m[3])
               : "r"(shared_address(row))
               : "memory");
}

// A matrix that the warp holds, transposed.
__device__ __forceinline__ unsigned transpose_matrix(unsigned m) {
  unsigned out;
  asm("movmatrix.sync.aligned.m8n8.trans.b16 %0, %1;" : "=r"(out) : "r"(m));
  return out;
}

}  // namespace millrace
