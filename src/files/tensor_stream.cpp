#include "files/tensor_stream.h"

#include <algorithm>
#include <vector>

#include "machine/team.h"

namespace millrace {
namespace {

// Elements a thread makes between two writes: 2 MB as f32, so that threads meet rarely and a slab
// still stays near the caches.
constexpr int64_t kPartElems = 1 << 19;

class Stream {
 public:
  Stream(GgufWriter& writer, const FillRows& fill, const StreamOptions& options)
      : writer_(writer), fill_(fill), options_(options), team_(std::max(1, options.n_threads)) {}

  Status write_tensor(size_t index) {
    const TensorPlan& tensor = writer_.tensors()[index];
    const int64_t n_rows = tensor.n_rows();
    const int64_t part = std::max<int64_t>(1, kPartElems / tensor.shape.back());
    const int64_t slab = part * team_.size();
    for (int64_t first = 0; first < n_rows; first += slab) {
      if (options_.stop != nullptr && *options_.stop) return error(Code::cancelled, "interrupted");
      report(tensor.name);
      MILLRACE_TRY(write_slab({index, first, std::min(slab, n_rows - first)}, part));
    }
    return {};
  }

 private:
  Status write_slab(const RowRange& rows, int64_t part) {
    const size_t row_bytes = writer_.tensors()[rows.tensor].row_bytes();
    buffer_.resize(static_cast<size_t>(rows.n) * row_bytes);
    team_.run([&](Lane& lane) {
      const int64_t begin = std::min(rows.n, lane.index * part);
      const int64_t n = std::min(part, rows.n - begin);
      if (n > 0)
        fill_({rows.tensor, rows.first + begin, n},
              buffer_.data() + static_cast<size_t>(begin) * row_bytes);
    });
    done_bytes_ += buffer_.size();
    return writer_.write(buffer_);
  }

  void report(std::string_view what) const {
    const auto all = static_cast<double>(std::max<size_t>(1, writer_.data_bytes()));
    if (options_.progress) options_.progress(static_cast<double>(done_bytes_) / all, what);
  }

  GgufWriter& writer_;
  const FillRows& fill_;
  const StreamOptions& options_;
  Team team_;
  std::vector<std::byte> buffer_;
  size_t done_bytes_ = 0;
};

}  // namespace

Status stream_tensors(GgufWriter& writer, const FillRows& fill, const StreamOptions& options,
                      const TensorDone& done) {
  Stream stream(writer, fill, options);
  for (size_t i = 0; i < writer.tensors().size(); ++i) {
    MILLRACE_TRY(stream.write_tensor(i));
    if (done) done(i);
  }
  return {};
}

}  // namespace millrace
