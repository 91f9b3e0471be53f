import LibC

/// The limit of open files and connections of this process.
enum DescriptorLimit {
  /// Raises the limit to the maximum without privileges, or to `most`.
  ///
  /// Linux keeps the default of 1024 for programs that use `select`, which this program does not.
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
    // If the system refuses, the limit is unchanged and bounds the number of connections.
    setrlimit(resource, &limit)
  }

  #if canImport(Darwin)
    /// The maximum that macOS allows without privileges.
    private static let most: rlim_t = 10_240
  #else
    private static let most: rlim_t = 65_536
  #endif
}
