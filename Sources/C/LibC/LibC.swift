// The C library of the platform, under one name.

#if canImport(Darwin)
  @_exported public import Darwin
#elseif canImport(Glibc)
  @_exported public import Glibc
#elseif canImport(Musl)
  @_exported public import Musl
#endif

/// Makes what was written to a file, or the names in a folder, survive a loss of power.
///
/// Returns 0, or -1 with `errno`, as `fsync`. On Darwin `fsync` stops at the drive's cache. File
/// systems without a full sync, such as those of a network, get the plain one.
package func syncToDisk(_ descriptor: CInt) -> CInt {
  #if canImport(Darwin)
    if fcntl(descriptor, F_FULLFSYNC) != -1 { return 0 }
  #endif
  return fsync(descriptor)
}
