#ifndef HEARTH_CZLIB_SHIM_H
#define HEARTH_CZLIB_SHIM_H

#include <zlib.h>

// Both are macros, which Swift does not import. 31 is the largest window with gzip's header; 8 is
// the memory level that zlib recommends.

static inline int czlib_inflate_init(z_stream *stream) { return inflateInit2(stream, 31); }

static inline int czlib_deflate_init(z_stream *stream, int level) {
  return deflateInit2(stream, level, Z_DEFLATED, 31, 8, Z_DEFAULT_STRATEGY);
}

#endif
