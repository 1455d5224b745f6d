// Target regions. Every file is compiled for the baseline CPU; code for a wider instruction set
// stands between MILLRACE_TARGET_<ISA> and MILLRACE_TARGET_END, after all includes and inside a
// namespace of its own. Per-file -m flags are not used: an inline function compiled wide in one
// file can replace the baseline copy at link time and crash a narrower host.
#pragma once

#define MILLRACE_PRAGMA(x) _Pragma(#x)
#define MILLRACE_TARGET(features) \
  MILLRACE_PRAGMA(GCC push_options) MILLRACE_PRAGMA(GCC target(features))
#define MILLRACE_TARGET_AVX2 MILLRACE_TARGET("avx2,fma,f16c,bmi,bmi2,lzcnt,popcnt")
#define MILLRACE_TARGET_AVX512                                                  \
  MILLRACE_TARGET(                                                              \
      "avx2,fma,f16c,bmi,bmi2,lzcnt,popcnt,avx512f,avx512bw,avx512vl,avx512dq," \
      "avx512cd")
#define MILLRACE_TARGET_AVX512_VNNI                                                      \
  MILLRACE_TARGET(                                                                       \
      "avx2,fma,f16c,bmi,bmi2,lzcnt,popcnt,avx512f,avx512bw,avx512vl,avx512dq,avx512cd," \
      "avx512vnni,"                                                                      \
      "avx512vbmi")
#define MILLRACE_TARGET_AVX512_BF16                                                      \
  MILLRACE_TARGET(                                                                       \
      "avx2,fma,f16c,bmi,bmi2,lzcnt,popcnt,avx512f,avx512bw,avx512vl,avx512dq,avx512cd," \
      "avx512bf16")
#define MILLRACE_TARGET_END MILLRACE_PRAGMA(GCC pop_options)
