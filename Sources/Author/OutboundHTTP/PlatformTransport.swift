/// The HTTP client that the clients of services use if they are given none.
package enum PlatformTransport {
  /// Creates a client with default limits.
  ///
  /// It is an `OutboundClient` where libcurl is available, with the certificates that the
  /// environment names. Elsewhere, as on phones, it is a `URLSessionTransport`, which trusts the
  /// system's certificates.
  package static func make(environment: [String: String] = [:]) -> any HTTPTransport {
    #if canImport(CCurl)
      OutboundClient(configuration: .init(environment: environment))
    #else
      URLSessionTransport()
    #endif
  }
}
