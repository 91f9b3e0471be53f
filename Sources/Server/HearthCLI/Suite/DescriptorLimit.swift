#if canImport(Darwin)
  import Darwin
#elseif canImport(Musl)
  import Musl
#else
  import Glibc
#endif

/// How many files and connections this process may have open.
enum DescriptorLimit {
  /// Raises the limit to what the system allows without further rights, or to `most`.
  ///
  /// Linux's usual 1024 are kept for programs with `select`, which this one has not.
  static func raise() {
    #if canImport(Glibc)
      let resource = __rlimit_resource_t(RLIMIT_NOFILE.rawValue)
    #else
      let resource = RLIMIT_NOFILE
    #endif
    var limit = rlimit()
    guard getrlimit(resource, &limit) == 0 else { return }
    let wanted = min(limit.rlim_max, most)
    guard limit.rlim_cur < wanted else { return }
    limit.rlim_cur = wanted
    // A system that refuses leaves the limit as it was, and the connections are bounded by that.
    setrlimit(resource, &limit)
  }

  #if canImport(Darwin)
    /// macOS allows no more without further rights.
    private static let most: rlim_t = 10_240
  #else
    private static let most: rlim_t = 65_536
  #endif
}
