import FunctionsRuntime
import LibC
import Synchronization

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// Callables that succeed or fail as the request asks.
struct SampleCallables: Sendable {
  /// The version of the binary that `count` reports.
  let version: String
  private let gates = Gates()
  private let counter = Counter()

  init(version: String) {
    self.version = version
  }

  /// Returns its data.
  var echo: OnCall<FirestoreValue, FirestoreValue> {
    .init("echo", options: .init(dates: .rfc3339)) { $0.data }
  }

  /// Returns the time by the functions' clock, read in a detached task.
  var currentTime: OnCall<FirestoreValue, String> {
    .init("currentTime") { _ in await Task.detached { FunctionClock.now.description }.value }
  }

  /// Returns the caller's UID.
  var whoAmI: OnCall<FirestoreValue, String> {
    .init("whoAmI") { try $0.requireUser() }
  }

  /// Returns `true` to administrators.
  var adminOnly: OnCall<FirestoreValue, Bool> {
    .init("adminOnly", callers: .claim("admin")) { _ in true }
  }

  struct Failure: Codable, Sendable {
    /// The name of a status code, or `plain` for an error whose text clients must not see.
    var code: String
    var message: String?
    var details: FirestoreValue?
  }

  /// Fails with the requested error.
  var failing: OnCall<Failure, Bool> {
    .init("failing") { request in
      let message = request.data.message ?? "failed as asked"
      guard let code = StatusCode(name: request.data.code) else { throw PlainError(text: message) }
      throw CallableError(code, message, details: request.data.details)
    }
  }

  struct PlainError: Error {
    var text: String
  }

  /// Crashes its worker.
  var crash: OnCall<FirestoreValue, Bool> {
    .init("crash") { _ in fatalError("crashed as asked") }
  }

  struct Hang: Codable, Sendable {
    /// True to ignore cancellation.
    var isStubborn: Bool?
  }

  /// Logs that it has begun and runs until it is cancelled.
  var hang: OnCall<Hang, Bool> {
    .init("hang", options: .init(timeout: .seconds(2))) { request in
      request.logger.info("Begun")
      repeat {
        do {
          try await Task.sleep(for: .seconds(3600))
        } catch {
          request.logger.notice("Cancelled")
        }
        // Sleeps of a cancelled task end at once, so this keeps a stubborn function from spinning.
        if request.data.isStubborn == true { usleep(10_000) }
      } while request.data.isStubborn == true
      return true
    }
  }

  struct Flood: Codable, Sendable {
    var lines: Int
    var lineBytes: Int?
  }

  /// Prints the requested number of lines and returns that number.
  var flood: OnCall<Flood, Int> {
    .init("flood") { request in
      let line = String(repeating: "x", count: request.data.lineBytes ?? 100)
      for number in 0..<request.data.lines { print(number, line) }
      return request.data.lines
    }
  }

  /// Logs a message at `info`, logs it to a second logger, and prints it.
  var log: OnCall<String, Bool> {
    .init("log") { request in
      request.logger.info("\(request.data)", metadata: ["from": "request"])
      Logger(label: "library").warning("\(request.data)", metadata: ["from": "library"])
      print(request.data)
      return true
    }
  }

  struct Slow: Codable, Sendable {
    var milliseconds: Int
    var text: String
  }

  /// Logs that it has begun and returns after a while.
  var slowEcho: OnCall<Slow, String> {
    .init("slowEcho") { request in
      request.logger.info("Begun")
      try await Task.sleep(for: .milliseconds(request.data.milliseconds))
      return request.data.text
    }
  }

  struct Gate: Codable, Sendable {
    var key: String
    var opens: Bool?
  }

  /// Waits until another call with the same key opens the gate.
  ///
  /// A test thereby decides when the call ends. Returns the number of calls that were waiting.
  var gate: OnCall<Gate, Int> {
    .init("gate") { [gates] request in
      if request.data.opens == true { return await gates.open(request.data.key) }
      return try await gates.wait(request.data.key)
    }
  }

  struct Count: Codable, Sendable, Equatable {
    var calls: Int
    var process: Int32
    var version: String
  }

  /// Returns the number of calls to this worker, its process ID and its version.
  var count: OnCall<FirestoreValue, Count> {
    .init("count") { [counter, version] _ in
      Count(calls: counter.next(), process: getpid(), version: version)
    }
  }

  /// Returns at once and has a timeout of one second.
  var hasty: OnCall<FirestoreValue, Bool> {
    .init("hasty", options: .init(timeout: .seconds(1))) { _ in true }
  }

  /// A callable that only some binaries contain.
  var extra: OnCall<FirestoreValue, Bool> {
    .init("extra") { _ in true }
  }

  /// Returns the names of the worker's environment variables.
  var environment: OnCall<FirestoreValue, [String]> {
    .init("environment") { _ in
      ProcessInfo.processInfo.environment.keys.sorted()
    }
  }
}

/// A counter that starts at 1.
private final class Counter: Sendable {
  private let value = Mutex(0)

  func next() -> Int {
    value.withLock { value in
      value += 1
      return value
    }
  }
}

/// Gates by key; a gate that was opened stays open.
private actor Gates {
  private var waiting: [String: [CheckedContinuation<Void, Never>]] = [:]
  private var opened: Set<String> = []

  func wait(_ key: String) async throws -> Int {
    if !opened.contains(key) {
      await withCheckedContinuation { waiting[key, default: []].append($0) }
    }
    return 0
  }

  func open(_ key: String) -> Int {
    opened.insert(key)
    let continuations = waiting.removeValue(forKey: key) ?? []
    for continuation in continuations { continuation.resume() }
    return continuations.count
  }
}
