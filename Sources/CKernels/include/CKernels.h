#ifndef C_KERNELS_H
#define C_KERNELS_H
#endif
