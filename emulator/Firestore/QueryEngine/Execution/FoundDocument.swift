import DocumentModel

/// A document that matches, decoded as far as matching and sorting need.
///
/// Most candidates do not match, and of those that do a limit lets few through; so the rest of a
/// document is decoded when it becomes a result.
struct FoundDocument: Sendable {
  /// The name, the times and the fields that the query tests, orders by or returns.
  let tested: FirestoreDocument
  /// The stored form when the result needs more fields; nil when `tested` suffices.
  private let stored: [UInt8]?
  /// Whether `tested` has the selected fields and no others.
  private let isProjected: Bool

  /// A document that is decoded as far as its result needs it.
  init(_ document: FirestoreDocument) {
    self.init(document, isProjected: false)
  }

  private init(_ tested: FirestoreDocument, stored: [UInt8]? = nil, isProjected: Bool) {
    self.tested = tested
    self.stored = stored
    self.isProjected = isProjected
  }

  /// Decodes what the query needs to decide about a stored document.
  init(_ stored: [UInt8], for query: PreparedQuery) throws {
    switch query.decoding {
    case .whole: self.init(try DocumentKeys.decode(stored), isProjected: true)
    case .only(let selection):
      let tested = try DocumentKeys.decode(stored, only: selection)
      self.init(tested, isProjected: query.decodesResult)
    case .first(let selection):
      let tested = try DocumentKeys.decode(stored, only: selection)
      self.init(tested, stored: stored, isProjected: true)
    }
  }

  /// The document as a result: with the selected fields, or with all.
  func result(of query: PreparedQuery) throws -> FirestoreDocument {
    if let stored { return try DocumentKeys.decode(stored) }
    return isProjected ? tested : query.project(tested)
  }
}
