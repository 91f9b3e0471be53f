import Identity
import OutboundHTTP

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

extension CredentialReader {
  /// Creates the credential reader of a worker.
  ///
  /// On the emulator it accepts tokens without verifying them. In production it verifies them with
  /// Google's public keys.
  init(_ settings: WorkerSettings) {
    guard settings.credentialMode == .production, let project = settings.project else {
      self.init(mode: settings.credentialMode)
      return
    }
    let client = OutboundClient()
    let now: @Sendable () -> Double = { Date().timeIntervalSince1970 }
    func keys(at url: String) -> SigningKeys {
      SigningKeys(url: url, now: now) { url in
        let response = try await client.send(
          OutboundRequest(url: url, timeout: Self.keysTimeMax, responseBytesMax: Self.keysBytesMax)
        )
        guard response.isSuccess else { throw KeysUnavailableError(status: response.status) }
        return SigningKeys.Answer(
          body: response.body,
          cacheControl: response.headers["cache-control"]
        )
      }
    }
    self.init(
      mode: .production,
      idTokens: .idTokens(project: project, keys: keys(at: SigningKeys.idTokensURL), now: now),
      appTokens: .appCheck(project: project, keys: keys(at: SigningKeys.appCheckURL), now: now),
      blockingTokens: .blocking(project: project, keys: keys(at: SigningKeys.idTokensURL), now: now)
    )
  }

  /// The time limit for fetching the signing keys.
  ///
  /// A caller waits for the keys, so a late response is useless.
  private static let keysTimeMax: Duration = .seconds(10)
  /// The size limit of a key set.
  ///
  /// Google's key sets have a few kB.
  private static let keysBytesMax = 1 << 20

  private struct KeysUnavailableError: Error {
    var status: Int
  }
}
