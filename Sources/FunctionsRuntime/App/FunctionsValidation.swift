import Events
import Invocation
import RuntimeSupport

/// What is wrong with an app's functions, found before anything is served.
///
/// Each message names the function and says what to change.
enum FunctionsValidation {
  private static let eventSecondsMax = 540
  private static let callableSecondsMax = 3600
  private static let concurrencyMax = 1000
  private static let nameLengthMax = 63
  private static let reservedPrefixes = ["X_GOOGLE_", "FIREBASE_", "EXT_", "KIT_"]

  /// All problems, in the order of the functions.
  static func problems(in functions: [FunctionDefinition]) -> [String] {
    var problems: [String] = []
    if functions.isEmpty {
      problems.append("The app has no functions; list at least one in FunctionsApp { … }.")
    }
    var seen: [String: Int] = [:]
    for function in functions {
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

    var secondsMax = callableSecondsMax
    switch function.trigger {
    case .callable:
      if options.retry == true {
        report("is a callable, which is never tried again; remove retry: true.")
      }
    case .document(_, let pattern):
      secondsMax = eventSecondsMax
      do {
        _ = try PathPattern(pattern)
      } catch {
        report("cannot be triggered. \(error.statusMessage)")
      }
    }
    if let timeout = options.timeout, !(1...secondsMax).contains(timeout.wholeSeconds) {
      report("has a timeout of \(timeout); set one from 1 to \(secondsMax) seconds.")
    }
    if let concurrency = options.concurrency, !(1...concurrencyMax).contains(concurrency) {
      report("has a concurrency of \(concurrency); set one from 1 to \(concurrencyMax).")
    }
    if let least = options.minInstances, least < 0 {
      report("has \(least) minInstances; set 0 or more.")
    }
    if let most = options.maxInstances, most < max(1, options.minInstances ?? 0) {
      report("has \(most) maxInstances; set at least 1 and no fewer than minInstances.")
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
  /// The seconds, a part of one counted as a whole.
  var wholeSeconds: Int {
    let (seconds, attoseconds) = components
    return Int(
      clamping: attoseconds > 0 ? seconds.addingReportingOverflow(1).partialValue : seconds
    )
  }
}

extension FunctionEndpoint.EventTrigger {
  /// The trigger for one kind of event on documents that match a pattern, as Eventarc filters it.
  init(kind: DocumentEventKind, pattern: String, retry: Bool) {
    let hasWildcards = (try? PathPattern(pattern))?.hasWildcards ?? true
    self.init(
      eventType: kind.eventType,
      eventFilters: [
        "database": "(default)", "namespace": "(default)",
      ].merging(hasWildcards ? [:] : ["document": pattern]) { $1 },
      eventFilterPathPatterns: hasWildcards ? ["document": pattern] : nil,
      retry: retry
    )
  }
}
