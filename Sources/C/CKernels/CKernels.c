#include "CKernels.h"

#include <math.h>

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

PER_CPU int32_t hearth_dot_int8(
    const int8_t *restrict row, const int16_t *restrict query, size_t count) {
  int32_t sum = 0;
  for (size_t i = 0; i < count; i++) sum += (int32_t)row[i] * (int32_t)query[i];
  return sum;
}

PER_CPU float hearth_quantise(
    const float *restrict values, size_t count, int8_t *restrict codes,
    float *restrict squared_error) {
#pragma clang fp reassociate(on) contract(fast)
  float largest = 0;
  for (size_t i = 0; i < count; i++) {
    float magnitude = fabsf(values[i]);
    largest = magnitude > largest ? magnitude : largest;
  }
  // Below this the quotient would not be finite; such a row keeps all of itself as its error.
  float scale = largest > 1e-30f ? largest / 127 : 0;
  float inverse = scale > 0 ? 127 / largest : 0;
  float error = 0;
  for (size_t i = 0; i < count; i++) {
    float quotient = values[i] * inverse;
    int32_t code = (int32_t)(quotient + (quotient < 0 ? -0.5f : 0.5f));
    code = code > 127 ? 127 : code < -127 ? -127 : code;
    codes[i] = (int8_t)code;
    float lost = values[i] - scale * (float)code;
    error += lost * lost;
  }
  *squared_error = error;
  return scale;
}
