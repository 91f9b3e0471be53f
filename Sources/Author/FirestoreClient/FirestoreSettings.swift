package import GoogleAccess

/// The place of a database and how to talk to it.
public struct FirestoreSettings: Sendable {
  /// The project's id.
  public var project: String
  /// The database's id within the project.
  public var database: String
  /// The address before `/v1`, such as `http://127.0.0.1:8080`.
  public var endpoint: String
  /// The rights that calls use.
  public var credential: FirestoreCredential
  /// How long one call may take.
  public var timeout: Duration
  /// The largest answer; a larger one fails, so page through large results with `limit`.
  public var responseBytesMax: Int
  /// The source of the administrator's access tokens; nil if the word `owner` is enough.
  package var credentials: CredentialsSource?

  /// Settings with every default visible.
  public init(
    project: String,
    database: String = "(default)",
    endpoint: String,
    credential: FirestoreCredential = .admin,
    timeout: Duration = .seconds(60),
    responseBytesMax: Int = 64 << 20
  ) {
    self.project = project
    self.database = database
    self.endpoint = endpoint
    self.credential = credential
    self.timeout = timeout
    self.responseBytesMax = responseBytesMax
  }

  /// An emulator or production, according to an environment that is handed in.
  ///
  /// `FIRESTORE_EMULATOR_HOST` names an emulator and takes precedence. Without it the database is
  /// Google's, with the credentials of the key file that `GOOGLE_APPLICATION_CREDENTIALS` names, or
  /// of the metadata server (on Cloud Run, or as `GCE_METADATA_HOST` says). The project is
  /// `GCLOUD_PROJECT`, else `GOOGLE_CLOUD_PROJECT`, else the key file's. Throws
  /// `failedPrecondition` when something is missing, and when production would be a mistake: for a
  /// function that an emulator runs, and for a project whose id begins with `demo-`.
  public init(environment: [String: String]) throws {
    func value(_ names: String...) -> String? {
      names.lazy.compactMap { environment[$0] }.first { !$0.isEmpty }
    }
    let host = value("FIRESTORE_EMULATOR_HOST")
    let source = host == nil ? CredentialsSource(environment: environment) : nil
    guard host != nil || source != nil else {
      throw FirestoreError(
        .failedPrecondition,
        "FIRESTORE_EMULATOR_HOST is not set, and neither are credentials for production; set it to "
          + "the emulator's address, such as 127.0.0.1:8080, or GOOGLE_APPLICATION_CREDENTIALS to "
          + "the path of a key file"
      )
    }
    guard let project = value("GCLOUD_PROJECT", "GOOGLE_CLOUD_PROJECT") ?? source?.project else {
      throw FirestoreError(
        .failedPrecondition,
        "GCLOUD_PROJECT is not set; set it to the project's id, such as demo-psst"
      )
    }
    if let host {
      self.init(project: project, endpoint: host.contains("://") ? host : "http://\(host)")
      return
    }
    guard value("FUNCTIONS_EMULATOR") != "true", !project.hasPrefix("demo-") else {
      throw FirestoreError(
        .failedPrecondition,
        "FIRESTORE_EMULATOR_HOST is not set, and project \(project) is not for production here; "
          + "functions of an emulator and projects named demo-… use no other database"
      )
    }
    self.init(project: project, endpoint: Self.productionEndpoint)
    credentials = source
  }

  /// Google's Firestore.
  public static let productionEndpoint = "https://firestore.googleapis.com"
}

/// The rights that a call uses.
public enum FirestoreCredential: Sendable, Hashable, CustomStringConvertible {
  /// The administrator's rights, to which access rules do not apply.
  ///
  /// Emulators accept the word `owner` for it, production an access token.
  case admin
  /// The rights of a signed-in user, by the user's ID token.
  case idToken(String)
  /// The rights of somebody who is not signed in.
  case anonymous

  /// Only the kind, because a token must not be written to a log.
  public var description: String {
    switch self {
    case .admin: "admin"
    case .idToken: "idToken"
    case .anonymous: "anonymous"
    }
  }
}
