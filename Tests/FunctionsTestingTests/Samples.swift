import FunctionsTesting
import Synchronization

/// Functions for the suites under test.
enum Sample {
  /// Logs whom it greets.
  static var greet: some CloudFunction<DocumentEvent<Document>, Void> {
    onDocumentCreated("greet", at: "users/{userId}") { event in
      let user = try event.params.userId
      event.logger.info("Welcome", metadata: ["user": "\(user)"])
    }
  }

  /// Passes each document of `a` on to `b`, those of `b` to `c`, and so on to `d`.
  static func chain(_ firestore: Firestore) -> FunctionsApp {
    FunctionsApp {
      for (from, to) in zip(["a", "b", "c"], ["b", "c", "d"]) {
        onDocumentCreated("\(from)To\(to)", at: "\(from)/{id}") { event in
          try await firestore.document("\(to)/\(event.params.id)").set(["from": .value(from)])
        }
      }
    }
  }

  /// Fails its first `failures` runs, or all of them.
  static func failing(
    _ failures: Int = .max,
    retry: Bool,
    with error: any Error = Broken()
  ) -> some CloudFunction<DocumentEvent<Document>, Void> {
    let runs = Counter()
    return onDocumentCreated(
      "fails",
      at: "users/{userId}",
      options: FunctionOptions(retry: .init(booleanLiteral: retry))
    ) { _ in
      if runs.next() <= failures { throw error }
    }
  }

  /// Fails each time.
  static var failingToo: some CloudFunction<DocumentEvent<Document>, Void> {
    onDocumentCreated("failsToo", at: "users/{userId}") { _ in throw Broken() }
  }

  /// Does not end before it is cancelled, and then tells.
  static func hanging(
    timeout: Duration? = nil,
    onEnd: @escaping @Sendable () -> Void = {}
  ) -> some CloudFunction<DocumentEvent<Document>, Void> {
    onDocumentCreated(
      "hangs",
      at: "users/{userId}",
      options: FunctionOptions(timeout: timeout)
    ) { _ in
      defer { onEnd() }
      try await Task.sleep(for: .seconds(3600))
    }
  }

  struct Broken: Error, CustomStringConvertible {
    var description: String { "it is broken" }
  }
}

/// Counts from 1, from any thread.
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

/// Keeps texts in the order of their coming, from any thread.
final class Seen: Sendable {
  private let texts = Mutex<[String]>([])
  var all: [String] { texts.withLock { $0 } }
  func add(_ text: String) { texts.withLock { $0.append(text) } }
}
