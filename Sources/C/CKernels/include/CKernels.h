#ifndef C_KERNELS_H
#define C_KERNELS_H

#include <stddef.h>
#include <stdint.h>

// Loops over numbers that the compiler vectorises, in a version for each level of x86-64 where the
// system can choose between them at run time. `count` is a number of elements; pointers need no
// alignment beyond an element's.

// The sum of the products of two vectors.
float hearth_dot(const float *a, const float *b, size_t count);

// The sum of the squared differences of two vectors.
float hearth_squared_distance(const float *a, const float *b, size_t count);

// The sum of the products of a row of bytes and a query of wider numbers. Exact as long as
// 127 * count * the query's largest magnitude fits an int32_t.
int32_t hearth_dot_int8(const int8_t *row, const int16_t *query, size_t count);

// Rounds a row to bytes: `values[i]` is about `codes[i]` times the scale that is returned.
// `squared_error` gets the sum of the squared differences.
float hearth_quantise(const float *values, size_t count, int8_t *codes, float *squared_error);

#endif
