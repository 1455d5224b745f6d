#include "memory/device.h"

#ifdef MILLRACE_CUDA
#include <cuda_runtime.h>
#endif

namespace millrace {

#ifdef MILLRACE_CUDA

namespace {

cudaStream_t raw(const Stream& stream) {
  return static_cast<cudaStream_t>(stream.get());
}

bool is_sticky(cudaError_t e) {
  return e == cudaErrorIllegalAddress || e == cudaErrorLaunchFailure || e == cudaErrorAssert ||
         e == cudaErrorMisalignedAddress || e == cudaErrorIllegalInstruction ||
         e == cudaErrorInvalidPc || e == cudaErrorHardwareStackError ||
         e == cudaErrorLaunchTimeout || e == cudaErrorECCUncorrectable;
}

}  // namespace

Status cuda_status(int error_code, std::string_view what) {
  const auto e = static_cast<cudaError_t>(error_code);
  if (e == cudaSuccess) return {};
  (void)cudaGetLastError();  // or the next launch would report this error again
  const Code code = is_sticky(e)                     ? Code::device_lost
                    : e == cudaErrorMemoryAllocation ? Code::out_of_memory
                                                     : Code::unavailable;
  return error(code, "{}: {} ({})", what, cudaGetErrorString(e), cudaGetErrorName(e));
}

void free_device(void* p) {
  (void)cudaFree(p);
}
void free_pinned(void* p) {
  (void)cudaFreeHost(p);
}
void free_stream(void* p) {
  (void)cudaStreamDestroy(static_cast<cudaStream_t>(p));
}
void free_event(void* p) {
  (void)cudaEventDestroy(static_cast<cudaEvent_t>(p));
}
void free_graph(void* p) {
  (void)cudaGraphExecDestroy(static_cast<cudaGraphExec_t>(p));
}

Result<DeviceBuffer> DeviceBuffer::make(size_t bytes) {
  DeviceBuffer b;
  if (bytes == 0) return b;
  void* p = nullptr;
  MILLRACE_TRY(cuda_status(cudaMalloc(&p, bytes), fmt::format("cudaMalloc of {} bytes", bytes)));
  b.handle_ = CudaHandle<free_device>(p);
  b.bytes_ = bytes;
  return b;
}

Result<PinnedBuffer> PinnedBuffer::make(size_t bytes) {
  PinnedBuffer b;
  if (bytes == 0) return b;
  void* p = nullptr;
  MILLRACE_TRY(
      cuda_status(cudaMallocHost(&p, bytes), fmt::format("cudaMallocHost of {} bytes", bytes)));
  b.handle_ = CudaHandle<free_pinned>(p);
  b.bytes_ = bytes;
  return b;
}

Result<Stream> Stream::make() {
  cudaStream_t s = nullptr;
  MILLRACE_TRY(
      cuda_status(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking), "cudaStreamCreate"));
  Stream stream;
  stream.handle_ = CudaHandle<free_stream>(s);
  return stream;
}

Status Stream::sync() const {
  return cuda_status(cudaStreamSynchronize(raw(*this)), "stream");
}

Status Stream::copy_to_device(void* dst, const void* src, size_t bytes) const {
  return cuda_status(cudaMemcpyAsync(dst, src, bytes, cudaMemcpyHostToDevice, raw(*this)),
                     "copy to device");
}

Status Stream::copy_to_host(void* dst, const void* src, size_t bytes) const {
  return cuda_status(cudaMemcpyAsync(dst, src, bytes, cudaMemcpyDeviceToHost, raw(*this)),
                     "copy to host");
}

Status Stream::copy_on_device(void* dst, const void* src, size_t bytes) const {
  return cuda_status(cudaMemcpyAsync(dst, src, bytes, cudaMemcpyDeviceToDevice, raw(*this)),
                     "copy on the device");
}

Status Stream::fill(void* dst, int byte, size_t bytes) const {
  return cuda_status(cudaMemsetAsync(dst, byte, bytes, raw(*this)), "fill");
}

Status Stream::begin_capture() const {
  return cuda_status(cudaStreamBeginCapture(raw(*this), cudaStreamCaptureModeThreadLocal),
                     "begin capture");
}

Result<Graph> Stream::end_capture() const {
  cudaGraph_t captured = nullptr;
  MILLRACE_TRY(cuda_status(cudaStreamEndCapture(raw(*this), &captured), "end capture"));
  cudaGraphExec_t exec = nullptr;
  const cudaError_t made = cudaGraphInstantiate(&exec, captured, 0);
  (void)cudaGraphDestroy(captured);
  MILLRACE_TRY(cuda_status(made, "cudaGraphInstantiate"));
  return Graph(exec);
}

Result<Event> Event::make() {
  cudaEvent_t e = nullptr;
  MILLRACE_TRY(cuda_status(cudaEventCreate(&e), "cudaEventCreate"));
  Event event;
  event.handle_ = CudaHandle<free_event>(e);
  return event;
}

Status Event::record(const Stream& stream) const {
  return cuda_status(cudaEventRecord(static_cast<cudaEvent_t>(handle_.get()), raw(stream)),
                     "cudaEventRecord");
}

Result<double> Event::us_since(const Event& start) const {
  float ms = 0;
  MILLRACE_TRY(cuda_status(cudaEventElapsedTime(&ms, static_cast<cudaEvent_t>(start.handle_.get()),
                                                static_cast<cudaEvent_t>(handle_.get())),
                           "cudaEventElapsedTime"));
  return 1e3 * static_cast<double>(ms);
}

Status Graph::launch(const Stream& stream) const {
  return cuda_status(cudaGraphLaunch(static_cast<cudaGraphExec_t>(handle_.get()), raw(stream)),
                     "cudaGraphLaunch");
}

Status reset_persisting_l2() {
  MILLRACE_TRY(cuda_status(cudaCtxResetPersistingL2Cache(), "reset persisting L2"));
  return cuda_status(cudaDeviceSetLimit(cudaLimitPersistingL2CacheSize, 0), "L2 carve-out");
}

Result<int> cuda_device_count() {
  int n = 0;
  MILLRACE_TRY(cuda_status(cudaGetDeviceCount(&n), "looking for CUDA devices"));
  if (n == 0) return error(Code::unavailable, "no CUDA device");
  return n;
}

Result<std::string> cuda_pci_bus_id() {
  int device = 0;
  char id[32] = "";
  MILLRACE_TRY(cuda_status(cudaGetDevice(&device), "looking for the CUDA device"));
  MILLRACE_TRY(cuda_status(cudaDeviceGetPCIBusId(id, sizeof id, device), "asking a GPU"));
  return std::string(id);
}

Result<std::string> cuda_architecture() {
  int device = 0, major = 0, minor = 0;
  MILLRACE_TRY(cuda_status(cudaGetDevice(&device), "looking for the CUDA device"));
  MILLRACE_TRY(cuda_status(
      cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device), "asking a GPU"));
  MILLRACE_TRY(cuda_status(
      cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, device), "asking a GPU"));
  return fmt::format("sm_{}{}", major, minor);
}

#else

namespace {

Status no_cuda() {
  return error(Code::unavailable, "this millrace was built without CUDA; build the cuda preset");
}

}  // namespace

Status cuda_status(int, std::string_view) {
  return no_cuda();
}
void free_device(void*) {}
void free_pinned(void*) {}
void free_stream(void*) {}
void free_event(void*) {}
void free_graph(void*) {}
Result<DeviceBuffer> DeviceBuffer::make(size_t) {
  return no_cuda();
}
Result<PinnedBuffer> PinnedBuffer::make(size_t) {
  return no_cuda();
}
Result<Stream> Stream::make() {
  return no_cuda();
}
Status Stream::sync() const {
  return no_cuda();
}
Status Stream::copy_to_device(void*, const void*, size_t) const {
  return no_cuda();
}
Status Stream::copy_to_host(void*, const void*, size_t) const {
  return no_cuda();
}
Status Stream::copy_on_device(void*, const void*, size_t) const {
  return no_cuda();
}
Status Stream::fill(void*, int, size_t) const {
  return no_cuda();
}
Status Stream::begin_capture() const {
  return no_cuda();
}
Result<Graph> Stream::end_capture() const {
  return no_cuda();
}
Result<Event> Event::make() {
  return no_cuda();
}
Status Event::record(const Stream&) const {
  return no_cuda();
}
Result<double> Event::us_since(const Event&) const {
  return no_cuda();
}
Status Graph::launch(const Stream&) const {
  return no_cuda();
}
Status reset_persisting_l2() {
  return no_cuda();
}
Result<int> cuda_device_count() {
  return no_cuda();
}
Result<std::string> cuda_architecture() {
  return no_cuda();
}
Result<std::string> cuda_pci_bus_id() {
  return no_cuda();
}

#endif

}  // namespace millrace
