/// The logic that decides when to load a changed rules file, and which errors to report.
///
/// An editor may truncate a file before writing, write it in pieces, or replace it. Therefore, a
/// state counts only if it is seen twice in a row.
struct RulesFileWatch {
  /// The state of the file in one read.
  enum Look: Equatable {
    case content(String)
    case missing
    /// The file cannot be read, for the given reason.
    case unreadable(String)
  }

  enum Action: Equatable {
    case wait
    /// Load these rules, or report their errors.
    case load(String)
    /// Report that the file is missing or cannot be read.
    case report(String)
  }

  private var settled: Look
  /// The state that was seen once and differs from the settled one.
  private var seen: Look?
  /// The content that was last loaded or refused.
  private var content: String?

  /// Creates a watch for a file whose first state, if readable, has already been loaded.
  init(_ first: Look) {
    settled = first
    if case .content(let text) = first { content = text }
  }

  /// Processes one read of the file.
  mutating func looked(_ look: Look) -> Action {
    guard look != settled else {
      seen = nil
      return .wait
    }
    guard look == seen else {
      seen = look
      return .wait
    }
    settled = look
    seen = nil
    switch look {
    case .missing: return .report("is no longer there.")
    case .unreadable(let reason): return .report("cannot be read: \(reason)")
    case .content(let text):
      guard text != content else { return .wait }
      content = text
      return .load(text)
    }
  }
}
