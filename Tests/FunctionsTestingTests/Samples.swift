import FunctionsTesting
import Synchronization

/// Functions for the suites under test.
enum Sample {
  /// Logs the user that it greets.
  static var greet: OnDocumentCreated<FirestoreDocument> {
    .init("greet", at: "users/{userId}") { event in
      let user = try event.params.userId
      event.logger.info("Welcome", metadata: ["user": "\(user)"])
    }
  }

  /// A chain of triggers that copy each document of `a` to `b`, of `b` to `c`, and of `c` to `d`.
  struct Chain: Sendable {
    let firestore: Firestore

    var app: FunctionsApp {
      FunctionsApp {
        aTob
        bToc
        cTod
      }
    }

    var aTob: OnDocumentCreated<FirestoreDocument> { link("a", "b") }
    var bToc: OnDocumentCreated<FirestoreDocument> { link("b", "c") }
    var cTod: OnDocumentCreated<FirestoreDocument> { link("c", "d") }

    func link(_ from: String, _ to: String) -> OnDocumentCreated<FirestoreDocument> {
      .init("\(from)To\(to)", at: "\(from)/{id}") { event in
        try await firestore.document("\(to)/\(event.params.id)").set(["from": .value(from)])
      }
    }
  }

  /// Runs a test with the chain.
  static func withChain<Output>(
    _ faults: DeliveryFaults? = nil,
    test: (FunctionsSuite, Chain) async throws -> Output
  ) async throws -> Output {
    try await withFunctions(
      \.app,
      deliveryFaults: faults,
      { Chain(firestore: $0.firestore) },
      test: test
    )
  }

  /// Creates a function whose first `failures` runs fail.
  static func failing(
    _ failures: Int = .max,
    retry: Bool,
    with error: any Error = Broken()
  ) -> OnDocumentCreated<FirestoreDocument> {
    let runs = Counter()
    return .init(
      "fails",
      at: "users/{userId}",
      options: .init(retry: .init(booleanLiteral: retry))
    ) { _ in
      if runs.next() <= failures { throw error }
    }
  }

  /// A function that always fails.
  static var failingToo: OnDocumentCreated<FirestoreDocument> {
    .init("failsToo", at: "users/{userId}") { _ in throw Broken() }
  }

  /// Creates a function that runs until it is cancelled, and then calls `onEnd`.
  static func hanging(
    timeout: Duration? = nil,
    onEnd: @escaping @Sendable () -> Void = {}
  ) -> OnDocumentCreated<FirestoreDocument> {
    .init("hangs", at: "users/{userId}", options: .init(timeout: timeout)) { _ in
      defer { onEnd() }
      try await Task.sleep(for: .seconds(3600))
    }
  }

  struct Broken: Error, CustomStringConvertible {
    var description: String { "it is broken" }
  }
}

/// A thread-safe counter that starts at 1.
final class Counter: Sendable {
  private let count = Mutex(0)
  var value: Int { count.withLock { $0 } }

  @discardableResult
  func next() -> Int {
    count.withLock { count in
      count += 1
      return count
    }
  }
}

/// A thread-safe list of texts in order of arrival.
final class Seen: Sendable {
  private let texts = Mutex<[String]>([])
  var all: [String] { texts.withLock { $0 } }
  func add(_ text: String) { texts.withLock { $0.append(text) } }
}
