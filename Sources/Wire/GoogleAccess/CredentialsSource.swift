import JSONText
import StatusCodes

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// The source of credentials for Google's services.
package enum CredentialsSource: Sendable, Hashable {
  /// A JSON file with a service account's key or a user's refresh token.
  case file(String)
  /// The machine's metadata server, as `host` or `host:port`.
  case metadataServer(String)

  /// The host name of the metadata server on Google's machines.
  package static let metadataHost = "metadata.google.internal"

  /// Determines the source from environment variables; nil if they specify none.
  ///
  /// It uses `GOOGLE_APPLICATION_CREDENTIALS`, then `GCE_METADATA_HOST`. On Cloud Run, recognized
  /// by `K_SERVICE`, it uses the metadata server. It does not look elsewhere: a past login with
  /// `gcloud` does not mean that every program may act on production.
  package init?(environment: [String: String]) {
    func value(_ name: String) -> String? { environment[name].flatMap { $0.isEmpty ? nil : $0 } }
    if let path = value("GOOGLE_APPLICATION_CREDENTIALS") {
      self = .file(path)
    } else if let host = value("GCE_METADATA_HOST") {
      self = .metadataServer(host)
    } else if value("K_SERVICE") != nil {
      self = .metadataServer(Self.metadataHost)
    } else {
      return nil
    }
  }

  /// The project that a service account's key file belongs to; nil if unknown.
  package var project: String? {
    guard case .file(let path) = self else { return nil }
    // Callers have other ways to find the project, and a broken file is reported when it is used.
    return try? CredentialsFile(path: path).project
  }
}

/// The contents of a credentials file, as written by `gcloud` and the Cloud console.
struct CredentialsFile: Sendable, CustomStringConvertible, CustomReflectable {
  var project: String?
  var content: Content

  enum Content: Sendable {
    case serviceAccount(ServiceAccountKey)
    case user(clientID: String, clientSecret: String, refreshToken: String)
  }

  /// Reads a file; throws `FAILED_PRECONDITION` with its path and the problem.
  init(path: String) throws(StatusError) {
    func fault(_ reason: String) -> StatusError {
      StatusError(.failedPrecondition, "The credentials file \(path) \(reason).")
    }
    // The fault names the file and the remedy; the error of the system adds nothing.
    guard let data = try? Data(contentsOf: URL(filePath: path)) else {
      throw fault("cannot be read; correct GOOGLE_APPLICATION_CREDENTIALS")
    }
    // The decoder's error could show a secret.
    guard let fields = try? Fields(decodingJSON: data) else {
      throw fault("is not a JSON object with credentials")
    }
    func need(_ value: String?, _ name: String) throws(StatusError) -> String {
      guard let value, !value.isEmpty else { throw fault("has no \(name)") }
      return value
    }
    project = fields.project_id ?? fields.quota_project_id
    switch fields.type {
    case "service_account":
      let tokenAddress = fields.token_uri ?? Self.tokenAddress
      guard tokenAddress.hasPrefix("https://") else {
        throw fault("has a token_uri that is not https")
      }
      content = .serviceAccount(
        ServiceAccountKey(
          email: try need(fields.client_email, "client_email"),
          keyID: fields.private_key_id,
          privateKey: try need(fields.private_key, "private_key"),
          tokenAddress: tokenAddress
        )
      )
    case "authorized_user":
      content = .user(
        clientID: try need(fields.client_id, "client_id"),
        clientSecret: try need(fields.client_secret, "client_secret"),
        refreshToken: try need(fields.refresh_token, "refresh_token")
      )
    default:
      throw fault(
        "is of type \(fields.type ?? "nothing"), which is not supported; use a service account's "
          + "key, or a user's from gcloud auth application-default login"
      )
    }
  }

  var description: String { "credentials" }
  var customMirror: Mirror { Mirror(self, children: []) }

  /// Google's token endpoint.
  static let tokenAddress = "https://oauth2.googleapis.com/token"

  // These names are defined by the file format.
  private struct Fields: Decodable {
    var type: String?
    var project_id: String?
    var quota_project_id: String?
    var client_email: String?
    var private_key_id: String?
    var private_key: String?
    var token_uri: String?
    var client_id: String?
    var client_secret: String?
    var refresh_token: String?
  }
}
