#include "exec/device_program.h"

#include <algorithm>

namespace millrace {

void DeviceProgram::add(const Variant& variant, const ArgsBox& args) {
  MILLRACE_CHECK(is_cuda(variant.isa), "{} is not a device variant", variant.name);
  calls_.push_back({&variant, args});
}

Status DeviceProgram::prepare() {
  size_t bytes = 0;
  for (const Call& call : calls_)
    if (call.variant->workspace_bytes != nullptr)
      bytes = std::max(bytes, call.variant->workspace_bytes(call.args.bytes, 1));
  MILLRACE_ASSIGN(workspace_, DeviceBuffer::make(bytes));
  return {};
}

Status DeviceProgram::launch(const Stream& stream, size_t begin, size_t end) const {
  Exec exec{.stream = stream.get(),
            .workspace = workspace_.data(),
            .workspace_bytes = workspace_.bytes()};
  for (size_t i = begin; i < end; ++i)
    MILLRACE_TRY(calls_[i].variant->run(calls_[i].args.bytes, exec));
  return {};
}

Result<Graph> DeviceProgram::capture(const Stream& stream, size_t begin, size_t end,
                                     int repeats) const {
  MILLRACE_TRY(stream.begin_capture());
  Status launched;
  for (int i = 0; i < repeats && launched.ok(); ++i) launched = launch(stream, begin, end);
  auto graph = stream.end_capture();  // also after a failure: the stream must leave capture mode
  MILLRACE_TRY(launched);
  return graph;
}

}  // namespace millrace
