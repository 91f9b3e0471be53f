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
