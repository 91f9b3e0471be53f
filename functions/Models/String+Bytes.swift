extension String {
  /// The beginning that fits into so many bytes of UTF-8, whole characters only.
  ///
  /// A bound in characters would be none: one character can be as long as a book.
  public func prefix(bytesMax: Int) -> String {
    guard utf8.count > bytesMax else { return self }
    let end = utf8.index(startIndex, offsetBy: bytesMax)
    // Rounds down to where a character begins.
    let index = self.index(before: self.index(after: end))
    return String(self[..<index])
  }
}
