import Foundation
public import PsstModels

/// A search for contacts by name, without regard to case, accents and width.
public struct ContactSearch: Sendable {
  private let query: String
  private let words: [String]

  /// Creates a search for names with all words of a query; a blank query finds every name.
  public init(_ query: String) {
    self.query = Self.folded(query.trimmingCharacters(in: .whitespacesAndNewlines))
    words = self.query.split(whereSeparator: \.isWhitespace).map { String($0) }
  }

  /// Returns the contacts whose names match, in the given order.
  ///
  /// Those whose name begins with the query come first.
  public func matches<Element: Contact>(in contacts: [Element]) -> [Element] {
    matches(in: contacts, name: \.displayName)
  }

  /// Returns the clients and prospects whose names match, in the given order.
  ///
  /// Those whose name begins with the query come first.
  public func matches(in contacts: [any Contact]) -> [any Contact] {
    matches(in: contacts) { $0.displayName }
  }

  private func matches<Element>(
    in contacts: [Element],
    name nameOf: (Element) -> String
  ) -> [Element] {
    guard !words.isEmpty else { return contacts }
    var first: [Element] = []
    var others: [Element] = []
    for contact in contacts {
      let name = Self.folded(nameOf(contact))
      guard words.allSatisfy({ name.contains($0) }) else { continue }
      if name.hasPrefix(query) { first.append(contact) } else { others.append(contact) }
    }
    return first + others
  }

  /// Returns a text in the form in which names are compared.
  static func folded(_ text: String) -> String {
    text.folding(
      options: [.caseInsensitive, .diacriticInsensitive, .widthInsensitive],
      locale: nil
    )
  }
}
