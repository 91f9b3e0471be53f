public import DocumentModel
public import FirestoreClient
import TriggerDelivery

/// What the functions under test are built over: a database and an outside world of their own.
public struct FunctionsWorld: Sendable {
  /// The database, with the rights of the server client.
  public let firestore: Firestore
  /// Stands in for every server outside; a request that nothing is scripted for fails.
  public let http: TestHTTP
  /// What the functions shall take for their environment; no process variable is in it.
  public let environment: [String: String]
  /// The project's id.
  public let project: String
  let time: VirtualTime

  /// What time it is in the suite, for functions that ask; it passes as `FunctionsSuite.clock` says.
  public var now: Timestamp { time.now }

  /// The project of tests that do not care.
  public static let defaultProject = "demo-test"
}
