public import DocumentModel
public import FirestoreClient
import TriggerDelivery

/// The environment of the functions under test, with their database and external servers.
public struct TestEnvironment: Sendable {
  /// The database, with the access rights of the server client.
  public let firestore: Firestore
  /// The replacement of all external servers.
  ///
  /// A request without a scripted response fails.
  public let http: TestHTTP
  /// The environment variables for the functions, without the variables of the test's process.
  public let variables: [String: String]
  /// The id of the Firebase project.
  public let project: String
  let time: VirtualTime

  /// The suite's current time, for functions that need it.
  ///
  /// `FunctionsSuite.clock` advances it.
  public var now: Timestamp { time.now }

  /// The project of tests that do not name a project.
  public static let defaultProject = "demo-test"
}
