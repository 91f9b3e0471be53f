#include "CMemory.h"

#ifdef __linux__
#include <features.h>
#endif

#ifdef __GLIBC__
#include <malloc.h>
#include <stdio.h>
#include <unistd.h>

void hearth_return_freed_memory(void) {
  long processors = sysconf(_SC_NPROCESSORS_ONLN);
  mallopt(M_ARENA_MAX, processors > 2 ? (int)processors : 2);
  mallopt(M_MMAP_THRESHOLD, 256 << 10);
  mallopt(M_TRIM_THRESHOLD, 1 << 20);
}

#if __GLIBC_PREREQ(2, 33)
static size_t resident_bytes(void) {
  size_t pages = 0;
  FILE *file = fopen("/proc/self/statm", "r");
  if (file == NULL) return 0;
  if (fscanf(file, "%*s %zu", &pages) != 1) pages = 0;
  fclose(file);
  return pages * (size_t)sysconf(_SC_PAGESIZE);
}

void hearth_return_scattered_memory(size_t bytes_min) {
  // What was free and what was resident after the last search. Returned pages still count as free;
  // if they were used and freed again since, only the resident bytes show it.
  static size_t last_free = 0, last_resident = 0;
  size_t free_bytes = mallinfo2().fordblks, resident = resident_bytes();
  if (free_bytes < last_free) last_free = free_bytes;
  if (resident < last_resident) last_resident = resident;
  if (free_bytes - last_free < bytes_min && resident - last_resident < bytes_min) return;
  malloc_trim(0);
  last_free = mallinfo2().fordblks;
  last_resident = resident_bytes();
}
#else
void hearth_return_scattered_memory(size_t bytes_min) { malloc_trim(0); }
#endif
#else
void hearth_return_freed_memory(void) {}
void hearth_return_scattered_memory(size_t bytes_min) {}
#endif
