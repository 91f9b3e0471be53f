package import GoogleAccess

/// The address of a database and the settings with which to access it.
public struct FirestoreSettings: Sendable {
  /// The id of the Firebase project.
  public var project: String
  /// The id of the database within the project, usually `(default)`.
  public var database: String
  /// The base URL without `/v1`, such as `http://127.0.0.1:8080`.
  public var endpoint: String
  /// The access rights of the calls.
  public var credential: FirestoreCredential
  /// The time limit of one call.
  public var timeout: Duration
  /// The maximum size of a response in bytes.
  ///
  /// A larger response fails. Use `limit` to read large results in pages.
  public var responseBytesMax: Int
  /// The source of the administrator's access tokens; nil if the server accepts `owner`.
  package var credentials: CredentialsSource?

  /// Creates settings from explicit values.
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

  /// Creates settings for an emulator or for production, as described by an environment.
  ///
  /// `FIRESTORE_EMULATOR_HOST` names an emulator and takes precedence. Without it the database is
  /// Google's. The credentials then come from the key file that `GOOGLE_APPLICATION_CREDENTIALS`
  /// names, or from the metadata server on Cloud Run or at `GCE_METADATA_HOST`. The project is the
  /// value of `GCLOUD_PROJECT`, else of `GOOGLE_CLOUD_PROJECT`, else the project of the key file.
  ///
  /// Throws `failedPrecondition` if a variable is missing. It also throws if production would be a
  /// mistake: for a function that an emulator runs, and for a project whose id begins with `demo-`.
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

  /// The base URL of Google's Firestore.
  public static let productionEndpoint = "https://firestore.googleapis.com"
}

/// The access rights of a call.
public enum FirestoreCredential: Sendable, Hashable, CustomStringConvertible {
  /// The rights of the administrator, to whom security rules do not apply.
  ///
  /// Emulators accept `owner` as the administrator's token. Production requires an access token.
  case admin
  /// The rights of a signed-in user, identified by an ID token.
  case idToken(String)
  /// The rights of a caller who is not signed in.
  case anonymous

  /// The kind of credential without its token, which must not appear in a log.
  public var description: String {
    switch self {
    case .admin: "admin"
    case .idToken: "idToken"
    case .anonymous: "anonymous"
    }
  }
}
