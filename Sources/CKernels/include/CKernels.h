#ifndef C_KERNELS_H
#define C_KERNELS_H

#include <stddef.h>

// Loops over floats that the compiler vectorises, in a version for each level of x86-64 where the
// system can choose between them at run time. `count` is a number of floats; pointers need no
// alignment beyond a float's.

// The sum of the products of two vectors.
float hearth_dot(const float *a, const float *b, size_t count);

// The sum of the squared differences of two vectors.
float hearth_squared_distance(const float *a, const float *b, size_t count);

#endif
