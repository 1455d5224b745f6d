#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "kernels/attention/op.h"
#include "tensor/element.h"

namespace millrace::attention::reference {
namespace {

// Where token t of row r's sequence lies for KV head g: the page's block of that head, and the
// place.
struct Where {
  long long block, place;
};

Where where(const Args& a, long long r, long long g, long long t) {
  const long long page = a.tables[a.sequences[r] * a.max_pages + t / a.page_tokens];
  return {page * a.page_stride + g * a.head_dim * a.page_tokens, t % a.page_tokens};
}

std::vector<double> query(const Args& a, long long r, long long h) {
  std::vector<double> q(static_cast<size_t>(a.head_dim));
  for (size_t d = 0; d < q.size(); ++d)
    q[d] = load_element(a.q_type, a.q, r * a.q_stride + h * a.head_dim + static_cast<long long>(d));
  return q;
}

double score(const Args& a, const std::vector<double>& q, Where at) {
  double sum = 0;
  for (long long d = 0; d < a.head_dim; ++d)
    sum += q[static_cast<size_t>(d)] *
           load_element(a.kv_type, a.k_pages, at.block + d * a.page_tokens + at.place);
  return sum * a.scale;
}

// The first token that row r sees.
long long first_seen(const Args& a, long long r) {
  return a.window == 0 ? 0 : std::max(0LL, a.positions[r] - a.window + 1);
}

// Over the tokens from first_seen on.
std::vector<double> softmax(const Args& a, long long r, long long h, long long g) {
  const std::vector<double> q = query(a, r, h);
  const long long first = first_seen(a, r);
  std::vector<double> p(static_cast<size_t>(a.positions[r] + 1 - first));
  double max = -std::numeric_limits<double>::infinity(), sum = 0;
  for (size_t i = 0; i < p.size(); ++i) {
    p[i] = score(a, q, where(a, r, g, first + static_cast<long long>(i)));
    max = std::max(max, p[i]);
  }
  for (double& x : p) sum += x = std::exp(x - max);
  for (double& x : p) x /= sum;
  return p;
}

// One head of one row, into out[head_dim]: the sum of p * of(v, d).
template <class Of>
void head(const Args& a, long long r, long long h, std::span<double> out, Of of) {
  std::fill(out.begin(), out.end(), 0.0);
  if (a.positions[r] < 0) return;
  const long long g = h / (a.n_heads / a.n_kv_heads);
  const std::vector<double> p = softmax(a, r, h, g);
  for (size_t i = 0; i < p.size(); ++i) {
    const Where at = where(a, r, g, first_seen(a, r) + static_cast<long long>(i));
    const long long row = at.block + at.place * a.head_dim;
    for (size_t d = 0; d < out.size(); ++d) {
      const double v = load_element(a.kv_type, a.v_pages, row + static_cast<long long>(d));
      out[d] += p[i] * of(v, d);
    }
  }
}

}  // namespace

Status run(const Args& a, Exec& exec) {
  std::vector<double> out(static_cast<size_t>(a.head_dim));
  const Share items = exec.share(a.n_rows * a.n_heads);
  for (long long i = items.begin; i < items.end; ++i) {
    head(a, i / a.n_heads, i % a.n_heads, out, [](double v, size_t) { return v; });
    for (size_t d = 0; d < out.size(); ++d)
      store_element(a.q_type, a.out, i * a.head_dim + static_cast<long long>(d),
                    static_cast<float>(out[d]));
  }
  return {};
}

void magnitudes(const Args& a, const Errors& errors, std::span<double> out) {
  const auto dim = static_cast<size_t>(a.head_dim);
  std::vector<double> y(dim);
  for (long long i = 0; i < a.n_rows * a.n_heads; ++i) {
    head(a, i / a.n_heads, i % a.n_heads, y, [](double v, size_t) { return v; });
    head(a, i / a.n_heads, i % a.n_heads, out.subspan(static_cast<size_t>(i) * dim, dim),
         [&](double v, size_t d) {
           return errors.of_sums * std::fabs(v) + errors.of_weights * std::fabs(v - y[d]);
         });
  }
}

}  // namespace millrace::attention::reference
