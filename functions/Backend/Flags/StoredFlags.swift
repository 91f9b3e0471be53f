public import FirestoreClient
import Logging

/// Feature flags from a template that is stored at `remoteConfig/template`.
///
/// The template has the form of Remote Config's. It is read each time, so that a change counts at
/// once and without a deployment. Only the server reads and writes it.
public struct StoredFlags: FeatureFlagSource {
  private let firestore: Firestore

  /// Creates a source for a database.
  public init(firestore: Firestore) {
    self.firestore = firestore
  }

  /// Returns true if a flag is on for a user.
  ///
  /// Without a template every flag is off, and a flag that cannot be read is off. Whatever cannot
  /// be read is logged with each call. Throws `FirestoreError` if the database does not respond.
  public func isOn(_ flag: FeatureFlag, for uid: String) async throws -> Bool {
    let snapshot = try await firestore.document(Self.path).get()
    guard snapshot.exists else { return false }
    do {
      let template = try snapshot.data(as: FlagTemplate.self)
      if !template.problems.isEmpty {
        Logger.current.error(
          "Parts of the template of feature flags cannot be read and do not count",
          metadata: [
            "document.path": "\(Self.path)",
            "reason": "\(template.problems.prefix(Self.problemsMax).joined(separator: "; "))",
          ]
        )
      }
      return template.isOn(flag, for: uid)
    } catch let error as ValueCodingError {
      Logger.current.error(
        "The template of feature flags cannot be read, so that every flag is off",
        metadata: ["document.path": "\(Self.path)", "reason": "\(error)"]
      )
      return false
    }
  }

  /// The maximum number of problems in a log line.
  private static let problemsMax = 5

  /// The path of the template.
  public static let path = "remoteConfig/template"
}
