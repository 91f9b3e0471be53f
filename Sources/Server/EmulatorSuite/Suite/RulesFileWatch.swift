/// Decides which contents of a rules file are put in force, and what is reported of it.
///
/// An editor may truncate a file before it writes, write it in pieces, or put another in its place.
/// So only what is seen twice in a row counts.
struct RulesFileWatch {
  /// The state in which the file is found.
  enum Look: Equatable {
    case content(String)
    case missing
    /// The reason why it cannot be read.
    case unreadable(String)
  }

  enum Action: Equatable {
    case wait
    /// To put these rules in force, or to report what is wrong with them.
    case load(String)
    /// To report that the file is missing or cannot be read.
    case report(String)
  }

  private var settled: Look
  /// What was seen once and is not settled.
  private var seen: Look?
  /// The content that was last loaded, or refused.
  private var content: String?

  /// A watch of a file that was found so, and loaded if it had content.
  init(_ first: Look) {
    settled = first
    if case .content(let text) = first { content = text }
  }

  /// Takes one look at the file.
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
