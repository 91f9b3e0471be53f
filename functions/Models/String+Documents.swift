extension String {
  /// The longest prefix of whole characters that fits into so many bytes of UTF-8.
  ///
  /// A bound in characters would be no bound: one character can be as long as a book.
  public func prefix(bytesMax: Int) -> String {
    guard utf8.count > bytesMax else { return self }
    let end = utf8.index(startIndex, offsetBy: bytesMax)
    // Rounds down to where a character begins.
    let index = self.index(before: self.index(after: end))
    return String(self[..<index])
  }
}

extension String {
  /// Whether a document can have this id.
  public var isDocumentID: Bool {
    (1...Self.documentIDBytesMax).contains(utf8.count) && !utf8.contains(UInt8(ascii: "/"))
      && self != "." && self != ".." && !(hasPrefix("__") && hasSuffix("__"))
  }

  /// Whether a user can have this id, by Firebase's limit and Firestore's rules for documents.
  public var isUserID: Bool { utf8.count <= Self.uidBytesMax && isDocumentID }

  private static let documentIDBytesMax = 1500
  /// The longest uid, with room to spare: Firebase's have 128 characters at most.
  private static let uidBytesMax = 512
}
