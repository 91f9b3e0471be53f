extension String {
  /// Returns the longest prefix of whole characters that fits into a number of UTF-8 bytes.
  ///
  /// A limit in characters would not limit the size, because a character can have any number of
  /// bytes.
  public func prefix(bytesMax: Int) -> String {
    guard utf8.count > bytesMax else { return self }
    let end = utf8.index(startIndex, offsetBy: bytesMax)
    // Rounds down to the beginning of a character.
    let index = self.index(before: self.index(after: end))
    return String(self[..<index])
  }
}

extension String {
  /// True if the string is valid as a document's id.
  public var isDocumentID: Bool {
    (1...Self.documentIDBytesMax).contains(utf8.count) && !utf8.contains(UInt8(ascii: "/"))
      && self != "." && self != ".." && !(hasPrefix("__") && hasSuffix("__"))
  }

  /// True if the string is valid as a user's id.
  ///
  /// The limits are Firebase's and Firestore's rules for documents.
  public var isUserID: Bool { utf8.count <= Self.uidBytesMax && isDocumentID }

  private static let documentIDBytesMax = 1500
  /// The maximum size of a uid in bytes, with a margin.
  ///
  /// Firebase's uids have at most 128 characters.
  private static let uidBytesMax = 512
}
