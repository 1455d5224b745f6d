// What the variants of lab/spin.h share with their device code.
#pragma once

namespace millrace::lab::spin {

struct Args {
  const float* x;  // [n]
  float* y;        // [n], a copy of x
  long long n;
};

// Copies, and then spins so many thousandths of 10 us by the device's own clock; 0: looks at the
// clock and ends.
int launch(const Args& args, void* stream, int thousandths);
template <int kThousandths>
int launch_spin(const Args& args, void* stream, void*) {
  return launch(args, stream, kThousandths);
}

}  // namespace millrace::lab::spin
