#if canImport(Darwin)
  import Darwin
#elseif canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#endif

/// Bounds what the process can ask for at once, where the server's own watch would come too late.
enum MemoryBound {
  /// For stacks and for what is asked for and never touched.
  private static let spareBytes = 1 << 30

  /// Lets every request for memory fail that goes far beyond what the function may use.
  ///
  /// Counts memory that may be written; a bound of addresses would fail healthy processes, which
  /// reserve many. Its children have the same bound. Without effect on Darwin.
  static func set(mebibytes: Int) {
    let bytes = rlim_t((max(0, mebibytes) << 21) + spareBytes)
    var limit = rlimit(rlim_cur: bytes, rlim_max: bytes)
    // A bound that the system refuses leaves the watch, which is what counts.
    #if canImport(Glibc)
      _ = setrlimit(__rlimit_resource_t(RLIMIT_DATA.rawValue), &limit)
    #else
      _ = setrlimit(RLIMIT_DATA, &limit)
    #endif
  }
}
