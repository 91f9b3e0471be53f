#include "CKernels.h"

#if defined(__x86_64__) && defined(__linux__) && defined(__GLIBC__)
#define PER_CPU __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define PER_CPU
#endif

PER_CPU float hearth_dot(const float *restrict a, const float *restrict b, size_t count) {
#pragma clang fp reassociate(on) contract(fast)
  float sum = 0;
  for (size_t i = 0; i < count; i++) sum += a[i] * b[i];
  return sum;
}

PER_CPU float hearth_squared_distance(
    const float *restrict a, const float *restrict b, size_t count) {
#pragma clang fp reassociate(on) contract(fast)
  float sum = 0;
  for (size_t i = 0; i < count; i++) {
    float difference = a[i] - b[i];
    sum += difference * difference;
  }
  return sum;
}
