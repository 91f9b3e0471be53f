#include "CMemory.h"

#ifdef __linux__
#include <features.h>
#endif

#ifdef __GLIBC__
#include <malloc.h>
#include <unistd.h>

void hearth_return_freed_memory(void) {
  long processors = sysconf(_SC_NPROCESSORS_ONLN);
  mallopt(M_ARENA_MAX, processors > 2 ? (int)processors : 2);
  mallopt(M_MMAP_THRESHOLD, 256 << 10);
  mallopt(M_TRIM_THRESHOLD, 1 << 20);
}
#else
void hearth_return_freed_memory(void) {}
#endif
