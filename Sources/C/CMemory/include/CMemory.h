#ifndef C_MEMORY_H
#define C_MEMORY_H

// Makes glibc's allocator give freed memory back to the system, for a server that runs for days:
// one arena a processor, and blocks of 256 KiB and more mapped by themselves. By default it keeps
// what a burst has needed. Call it before other threads begin; elsewhere it does nothing.
void hearth_return_freed_memory(void);

#endif
