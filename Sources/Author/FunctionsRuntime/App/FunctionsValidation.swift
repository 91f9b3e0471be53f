import Events
import Manifests
import Schedules
import StatusCodes

/// The check of an app's functions for problems, before anything is served.
///
/// Each message names the function and says what to change.
enum FunctionsValidation {
  private static let nameLengthMax = 63
  private static let reservedPrefixes = ["X_GOOGLE_", "FIREBASE_", "EXT_", "KIT_"]

  /// Returns all problems in the order of the functions.
  static func problems(in functions: [FunctionDefinition]) -> [String] {
    var problems: [String] = []
    if functions.isEmpty {
      problems.append("The app has no functions; list at least one in FunctionsApp { … }.")
    }
    var seen: [String: Int] = [:]
    var deciding: [BlockingEventType: String] = [:]
    for function in functions {
      if case .blocking(let type) = function.trigger,
        let other = deciding.updateValue(function.name, forKey: type), other != function.name
      {
        problems.append(
          "The functions \"\(other)\" and \"\(function.name)\" are both for Auth's "
            + "\(type.rawValue); keep one."
        )
      }
      seen[function.name, default: 0] += 1
      if seen[function.name] == 2 {
        problems.append(
          "Two functions are named \"\(function.name)\"; give each a name of its own."
        )
      }
      problems += Self.problems(with: function)
    }
    return problems
  }

  private static func problems(with function: FunctionDefinition) -> [String] {
    let name = function.name
    let options = function.options
    var problems: [String] = []
    if !isName(name) {
      problems.append(
        "The function name \"\(name)\" must start with a letter and have only letters, digits, "
          + "'-' and '_', at most \(nameLengthMax); rename it."
      )
    }
    func report(_ problem: String) { problems.append("The function \"\(name)\" \(problem)") }

    problems += function.problems.map { "The function \"\(name)\" \($0)" }
    problems += triggerProblems(function).map { "The function \"\(name)\" \($0)" }
    problems += (options.retry?.problems ?? []).map { "The function \"\(name)\" \($0)" }
    let secondsMax = function.trigger.secondsMax
    if let timeout = options.timeout, !(1...secondsMax).contains(timeout.wholeSeconds) {
      report("has a timeout of \(timeout); set one from 1 to \(secondsMax) seconds.")
    }
    if let concurrency = options.concurrency,
      !(1...FunctionLimits.concurrencyMax).contains(concurrency)
    {
      report(
        "has a concurrency of \(concurrency); set one from 1 to \(FunctionLimits.concurrencyMax)."
      )
    }
    if let least = options.minInstances, least < 0 {
      report("has \(least) minInstances; set 0 or more.")
    }
    if let most = options.maxInstances, most < max(1, options.minInstances ?? 0) {
      report("has \(most) maxInstances; set at least 1 and no fewer than minInstances.")
    }
    if case .only(let origins) = options.cors,
      let origin = origins.sorted().first(where: { !isOrigin($0) })
    {
      report("allows the origin \"\(origin)\"; write it as a browser does: https://app.example.")
    }
    if let region = options.region, !isRegion(region) {
      report("has the region \"\(region)\"; set one such as europe-west1.")
    }
    for secret in options.secrets ?? [] {
      if !isVariable(secret) {
        report("wants the secret \"\(secret)\"; a secret's name has only A-Z, 0-9 and '_'.")
      } else if let prefix = reservedPrefixes.first(where: secret.hasPrefix) {
        report("wants the secret \"\(secret)\"; names that begin with \(prefix) are reserved.")
      }
    }
    return problems
  }

  /// Returns the problems of a trigger as sentence endings that follow the function's name.
  private static func triggerProblems(_ function: FunctionDefinition) -> [String] {
    switch function.trigger {
    case .callable, .typed, .http, .blocking: return []
    case .document(_, let pattern):
      return problem { () throws(StatusError) in _ = try PathPattern(pattern) }
    case .value(_, let instance, let ref):
      return problem { () throws(StatusError) in
        _ = try DatabasePattern(instance: instance, ref: ref)
      }
    case .cloudEvent(let filter): return problems(with: filter)
    case .schedule(let schedule, let timeZone):
      return problems(ofSchedule: schedule, timeZone, function.options.retry)
    case .taskQueue(let limits):
      let isQueue = !function.name.contains("_")
      return limits.problems
        + (isQueue ? [] : ["cannot name a task queue, for which '_' is not allowed; rename it."])
    }
  }

  private static func problems(
    ofSchedule schedule: String,
    _ timeZone: String?,
    _ retry: RetryPolicy?
  ) -> [String] {
    var problems: [String] = []
    do {
      _ = try Schedule(schedule, timeZone: timeZone)
    } catch {
      problems.append("cannot be scheduled. \(error.statusMessage)")
    }
    let attemptsMax = FunctionLimits.scheduleRetriesMax + 1
    if let attempts = retry?.attempts, attempts > attemptsMax {
      problems.append("has \(attempts) attempts; Cloud Scheduler makes \(attemptsMax) at most.")
    }
    return problems
  }

  private static func problems(with filter: CloudEventFilter) -> [String] {
    var problems: [String] = []
    if filter.type.isEmpty || filter.type.contains(where: \.isWhitespace) {
      problems.append("has the event type \"\(filter.type)\"; set a CloudEvents type.")
    }
    for name in filter.attributes.keys.sorted() + filter.patterns.keys.sorted()
    where !isAttribute(name) {
      problems.append(
        "filters by \"\(name)\"; an attribute's name has only a-z and 0-9."
      )
    }
    for name in Set(filter.attributes.keys).intersection(filter.patterns.keys).sorted() {
      problems.append("filters by \"\(name)\" twice; keep the value or the pattern.")
    }
    for (_, pattern) in filter.patterns.sorted(by: { $0.key < $1.key }) {
      problems += problem { () throws(StatusError) in
        _ = try PathPattern(pattern, ofDocuments: false)
      }
    }
    return problems
  }

  /// Returns the problem of the patterns that `parse` parses, if they have one.
  private static func problem(_ parse: () throws(StatusError) -> Void) -> [String] {
    do {
      try parse()
      return []
    } catch {
      return ["cannot be triggered. \(error.statusMessage)"]
    }
  }

  private static func isAttribute(_ text: String) -> Bool {
    !text.isEmpty && text.utf8.allSatisfy { (97...122).contains($0) || isDigit($0) }
  }

  private static func isName(_ text: String) -> Bool {
    guard let first = text.utf8.first, isLetter(first) else { return false }
    return text.utf8.count <= nameLengthMax
      && text.utf8.allSatisfy {
        isLetter($0) || isDigit($0) || $0 == UInt8(ascii: "-") || $0 == UInt8(ascii: "_")
      }
  }

  private static func isRegion(_ text: String) -> Bool {
    let parts = text.split(separator: "-", omittingEmptySubsequences: false)
    guard parts.count >= 2, let last = parts.last?.utf8.last, isDigit(last) else { return false }
    return parts.allSatisfy { part in
      !part.isEmpty && part.utf8.allSatisfy { (97...122).contains($0) || isDigit($0) }
    }
  }

  /// Returns true if a text is a scheme and a host, with or without a port.
  ///
  /// A path is not allowed because the `Origin` header of a browser never contains one.
  private static func isOrigin(_ text: String) -> Bool {
    let parts = text.split(separator: "://", maxSplits: 1, omittingEmptySubsequences: false)
    return parts.count == 2 && !parts[0].isEmpty && !parts[1].isEmpty && !parts[1].contains("/")
  }

  private static func isVariable(_ text: String) -> Bool {
    guard let first = text.utf8.first, !isDigit(first) else { return false }
    return text.utf8.allSatisfy {
      (65...90).contains($0) || isDigit($0) || $0 == UInt8(ascii: "_")
    }
  }

  private static func isLetter(_ byte: UInt8) -> Bool {
    (65...90).contains(byte) || (97...122).contains(byte)
  }

  private static func isDigit(_ byte: UInt8) -> Bool { (48...57).contains(byte) }
}

extension Duration {
  /// The duration in seconds, rounded up.
  var wholeSeconds: Int {
    let (seconds, attoseconds) = components
    return Int(
      clamping: attoseconds > 0 ? seconds.addingReportingOverflow(1).partialValue : seconds
    )
  }
}
