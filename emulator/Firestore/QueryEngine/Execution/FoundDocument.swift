import DocumentModel

/// A matching document, decoded only as far as matching and sorting require.
///
/// Most candidates do not match, and a limit lets few of the matching ones through. The rest of a
/// document is therefore decoded only when it becomes a result.
struct FoundDocument: Sendable {
  /// The document with the fields that the query tests, orders by or returns.
  let tested: FirestoreDocument
  /// The stored form if the result needs more fields; nil if `tested` suffices.
  private let stored: [UInt8]?
  /// True if `tested` has exactly the selected fields.
  private let isProjected: Bool

  /// Creates a document that needs no further decoding.
  init(_ document: FirestoreDocument) {
    self.init(document, isProjected: false)
  }

  private init(_ tested: FirestoreDocument, stored: [UInt8]? = nil, isProjected: Bool) {
    self.tested = tested
    self.stored = stored
    self.isProjected = isProjected
  }

  /// Decodes the part of a stored document that the query needs for its decision.
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

  /// Returns the document as a result, with the selected fields or with all fields.
  func result(of query: PreparedQuery) throws -> FirestoreDocument {
    if let stored { return try DocumentKeys.decode(stored) }
    return isProjected ? tested : query.project(tested)
  }
}
