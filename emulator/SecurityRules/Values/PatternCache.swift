import LinearRegex
import Synchronization

/// A bounded cache of compiled regular expressions.
final class PatternCache: Sendable {
  private static let patternsMax = 256

  private let patterns = Mutex<[ExactText: LinearPattern]>([:])

  func pattern(_ text: String) throws(OperationError) -> LinearPattern {
    if let known = patterns.withLock({ $0[ExactText(text)] }) { return known }
    let pattern: LinearPattern
    do { pattern = try LinearPattern(text) } catch {
      throw OperationError(message: "Invalid regular expression '\(text)': \(error.message).")
    }
    patterns.withLock { patterns in
      if patterns.count >= Self.patternsMax { patterns.removeAll() }
      patterns[ExactText(text)] = pattern
    }
    return pattern
  }
}
