#if canImport(Darwin)
  import Darwin
#elseif canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#endif

/// Bounds the memory requested at once, for which the server's own watch would come too late.
enum MemoryBound {
  /// The allowance for stacks and for memory that is requested but never touched.
  private static let spareBytes = 1 << 30

  /// Makes requests for memory fail that go far beyond what the function may use.
  ///
  /// Counts memory that may be written; a bound on addresses would fail healthy processes, which
  /// reserve many. Child processes have the same bound. Has no effect on Darwin.
  static func set(mebibytes: Int) {
    let bytes = rlim_t((max(0, mebibytes) << 21) + spareBytes)
    var limit = rlimit(rlim_cur: bytes, rlim_max: bytes)
    // If the system refuses the bound, the server's watch remains, which is what counts.
    #if canImport(Glibc)
      _ = setrlimit(__rlimit_resource_t(RLIMIT_DATA.rawValue), &limit)
    #else
      _ = setrlimit(RLIMIT_DATA, &limit)
    #endif
  }
}
