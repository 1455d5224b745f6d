// bench serve: a server under load, against the targets it is meant to hold. Without --url it
// starts servers of its own from the model, on free ports, and can then also see their memory and
// CPU time.
#pragma once

#include <string>

#include "cli/recorder.h"

namespace millrace::cli {

struct BenchServeOptions {
  std::string url, model;
  int threads = 0;
  bool json = false;
  bool quick = false;  // small sizes, and a missed target is no failure
  Recording recording = {};
};

int bench_serve(const BenchServeOptions& options);

}  // namespace millrace::cli
