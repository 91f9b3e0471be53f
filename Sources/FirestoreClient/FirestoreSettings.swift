/// Where a database is and how it is spoken to.
public struct FirestoreSettings: Sendable {
  /// The project's id.
  public var project: String
  /// The database's id within the project.
  public var database: String
  /// The address before `/v1`, such as `http://127.0.0.1:8080`.
  public var endpoint: String
  /// Whose rights are used.
  public var credential: FirestoreCredential
  /// How long one call may take.
  public var timeout: Duration
  /// A larger answer fails; page through larger results with `limit`.
  public var responseBytesMax: Int

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

  /// Reads `FIRESTORE_EMULATOR_HOST` and `GCLOUD_PROJECT` from an environment that is handed in.
  ///
  /// `GOOGLE_CLOUD_PROJECT` stands in for the latter. Throws `failedPrecondition` when either is
  /// missing: without an emulator there are no credentials yet.
  public init(environment: [String: String]) throws {
    func value(_ names: String...) -> String? {
      names.lazy.compactMap { environment[$0] }.first { !$0.isEmpty }
    }
    guard let host = value("FIRESTORE_EMULATOR_HOST") else {
      throw FirestoreError(
        .failedPrecondition,
        "FIRESTORE_EMULATOR_HOST is not set, and this client does not know how to get production "
          + "credentials; set it to the emulator's address, such as 127.0.0.1:8080"
      )
    }
    guard let project = value("GCLOUD_PROJECT", "GOOGLE_CLOUD_PROJECT") else {
      throw FirestoreError(
        .failedPrecondition,
        "GCLOUD_PROJECT is not set; set it to the project's id, such as demo-psst"
      )
    }
    self.init(
      project: project,
      endpoint: host.contains("://") ? host : "http://\(host)"
    )
  }
}

/// Whose rights a call uses.
public enum FirestoreCredential: Sendable, Hashable, CustomStringConvertible {
  /// The administrator's, for whom access rules do not apply.
  ///
  /// Emulators take the word `owner` for it.
  case admin
  /// A signed-in user's, by the user's ID token.
  case idToken(String)
  /// Nobody's.
  case anonymous

  /// The kind only, because a token must not be written to a log.
  public var description: String {
    switch self {
    case .admin: "admin"
    case .idToken: "idToken"
    case .anonymous: "anonymous"
    }
  }
}
