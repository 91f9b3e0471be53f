package import GoogleAccess
import JSONText

/// The address of a Realtime Database and the settings with which to access it.
public struct DatabaseSettings: Sendable {
  /// The base URL, such as `https://my-app-default-rtdb.firebaseio.com`, without a path.
  public var url: String
  /// The name of the instance; nil if the host of `url` names it.
  public var namespace: String?
  /// The access rights of the calls.
  public var credential: DatabaseCredential
  /// The time limit of one call.
  public var timeout: Duration
  /// The maximum size of a response in bytes.
  ///
  /// A larger response fails. Use a query with a limit to read large values in pages.
  public var responseBytesMax: Int
  /// The source of the administrator's access tokens; nil if the server accepts `owner`.
  package var credentials: CredentialsSource?

  /// Creates settings from explicit values.
  ///
  /// `url` may have the namespace as its query, such as `http://127.0.0.1:9000?ns=my-app`.
  public init(
    url: String,
    namespace: String? = nil,
    credential: DatabaseCredential = .admin,
    timeout: Duration = .seconds(60),
    responseBytesMax: Int = 64 << 20
  ) {
    let parts = url.split(separator: "?", maxSplits: 1).map { String($0) }
    var base = parts.first ?? ""
    while base.hasSuffix("/") { base.removeLast() }
    let query = (parts.count == 2 ? parts[1] : "").split(separator: "&")
    self.url = base
    self.namespace =
      namespace ?? query.first { $0.hasPrefix("ns=") }.map { String($0.dropFirst(3)) }
    self.credential = credential
    self.timeout = timeout
    self.responseBytesMax = responseBytesMax
  }

  /// Creates settings for an emulator or for production, as described by an environment.
  ///
  /// `FIREBASE_DATABASE_EMULATOR_HOST` names an emulator, and takes precedence. The database is the
  /// one at the `databaseURL` of `FIREBASE_CONFIG`; without it the project's default. The
  /// credentials for production are those of `FirestoreSettings(environment:)`.
  ///
  /// Throws `failedPrecondition` if a variable is missing. It also throws if production would be a
  /// mistake: for a function that an emulator runs, and for a project whose id begins with `demo-`.
  public init(environment: [String: String]) throws {
    func value(_ names: String...) -> String? {
      names.lazy.compactMap { environment[$0] }.first { !$0.isEmpty }
    }
    let configuration = value("FIREBASE_CONFIG").flatMap { JSONObjectText(parsing: Array($0.utf8)) }
    let host = value("FIREBASE_DATABASE_EMULATOR_HOST")
    let source = host == nil ? CredentialsSource(environment: environment) : nil
    let project =
      value("GCLOUD_PROJECT", "GOOGLE_CLOUD_PROJECT") ?? configuration?.text("projectId")
      ?? source?.project
    guard let project else {
      throw DatabaseError(
        .failedPrecondition,
        "GCLOUD_PROJECT is not set; set it to the project's id, such as demo-psst"
      )
    }
    let url = configuration?.text("databaseURL") ?? "https://\(project)-default-rtdb.firebaseio.com"
    self.init(url: url)
    if let host {
      namespace = namespace ?? Self.firstLabel(of: url)
      self.url = host.contains("://") ? host : "http://\(host)"
      return
    }
    // A function of an emulator may know its database by `databaseURL` alone.
    if url.hasPrefix("http://") { return }
    guard source != nil else {
      throw DatabaseError(
        .failedPrecondition,
        "FIREBASE_DATABASE_EMULATOR_HOST is not set, and neither are credentials for production; set "
          + "it to the emulator's address, such as 127.0.0.1:9000, or GOOGLE_APPLICATION_CREDENTIALS "
          + "to the path of a key file"
      )
    }
    guard value("FUNCTIONS_EMULATOR") != "true", !project.hasPrefix("demo-") else {
      throw DatabaseError(
        .failedPrecondition,
        "FIREBASE_DATABASE_EMULATOR_HOST is not set, and project \(project) is not for production "
          + "here; functions of an emulator and projects named demo-… use no other database"
      )
    }
    credentials = source
  }

  /// Returns the first label of a URL's host, which is the name of an instance in production.
  private static func firstLabel(of url: String) -> String? {
    let host = url.split(separator: "/").dropFirst().first
    return host?.split(separator: ".").first.map { String($0) }
  }
}
