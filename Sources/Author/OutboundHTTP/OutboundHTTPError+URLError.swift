import Foundation

#if canImport(FoundationNetworking)
  import FoundationNetworking
#endif

extension OutboundHTTPError.Kind {
  /// Creates the kind of an error of `URLSession`.
  ///
  /// A code that belongs to connecting is `cannotConnect` only if nothing can have been sent.
  /// `URLSession` itself repeats a request on another connection, which may then be refused.
  init(_ code: URLError.Code, mayBeSent: Bool) {
    self =
      switch code {
      case .timedOut: .timedOut
      case .cancelled, .userCancelledAuthentication: .cancelled
      case .dataLengthExceedsMaximum: .tooLarge
      // Apple's systems refuse `http` URLs unless the app's settings allow them.
      case .badURL, .unsupportedURL, .appTransportSecurityRequiresSecureConnection: .invalidRequest
      // Not `secureConnectionFailed`, which also stands for a failure after the handshake.
      case .cannotFindHost, .dnsLookupFailed, .cannotConnectToHost, .notConnectedToInternet,
        .internationalRoamingOff, .callIsActive, .dataNotAllowed, .serverCertificateHasBadDate,
        .serverCertificateHasUnknownRoot, .serverCertificateNotYetValid,
        .serverCertificateUntrusted:
        mayBeSent ? .failed : .cannotConnect
      default: .failed
      }
  }
}
