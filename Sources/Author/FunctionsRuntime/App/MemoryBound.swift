import LibC

/// A limit on the memory that the process can allocate at once.
///
/// The server also monitors the memory of its workers, but would notice a huge allocation too late.
enum MemoryBound {
  /// The allowance for stacks and for memory that is allocated but never touched.
  private static let spareBytes = 1 << 30

  /// Makes allocations fail that go far beyond the memory that the function may use.
  ///
  /// The limit counts writable memory. A limit on address space would break healthy processes,
  /// which reserve much more than they use. Child processes inherit the limit. Has no effect on
  /// Darwin.
  static func set(mebibytes: Int) {
    let bytes = rlim_t((max(0, mebibytes) << 21) + spareBytes)
    var limit = rlimit(rlim_cur: bytes, rlim_max: bytes)
    // If the system refuses the limit, the monitoring by the server is sufficient.
    #if canImport(Glibc)
      _ = setrlimit(__rlimit_resource_t(RLIMIT_DATA.rawValue), &limit)
    #else
      _ = setrlimit(RLIMIT_DATA, &limit)
    #endif
  }
}
