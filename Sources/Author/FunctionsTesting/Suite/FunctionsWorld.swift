public import DocumentModel
public import FirestoreClient
import TriggerDelivery

/// What the functions under test are built over: their own database and outside world.
public struct FunctionsWorld: Sendable {
  /// The database, with the rights of the server client.
  public let firestore: Firestore
  /// Stands in for every outside server; a request without a script fails.
  public let http: TestHTTP
  /// The environment for the functions; it has no variables of the process.
  public let environment: [String: String]
  /// The project's id.
  public let project: String
  let time: VirtualTime

  /// The suite's time, for functions that ask; it passes as `FunctionsSuite.clock` says.
  public var now: Timestamp { time.now }

  /// The project of tests that do not name one.
  public static let defaultProject = "demo-test"
}
