extension String {
  /// Returns the first scalars of a string in time that does not depend on its length.
  ///
  /// A limit in characters would not limit the size, because one character can be as long as a
  /// document.
  func prefix(scalarsMax: Int) -> String {
    String(unicodeScalars.prefix(scalarsMax))
  }

  /// Returns the string, or its first scalars and an ellipsis if it is longer.
  func shortened(scalarsMax: Int) -> String {
    let start = unicodeScalars.prefix(scalarsMax)
    return start.endIndex == endIndex ? self : String(start) + "…"
  }
}
