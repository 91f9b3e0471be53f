#ifndef C_MEMORY_H
#define C_MEMORY_H

#include <stddef.h>

// Makes glibc's allocator give freed memory back to the system, for a server that runs for days:
// one arena a processor, and blocks of 256 KiB and more mapped by themselves. By default it keeps
// what a burst has needed. Call it before other threads begin; elsewhere it does nothing.
void hearth_return_freed_memory(void);

// Gives back free pages between those in use, if at least so many bytes have become free since the
// last call. By itself the allocator gives back only the end of an arena, and after a burst
// something small is left there. Only one thread may call it.
void hearth_return_scattered_memory(size_t bytes_min);

#endif
