extension String {
  /// The first scalars of a text, in time that does not depend on the text's length.
  ///
  /// A bound in characters would be no bound: one character can be as long as a document.
  func prefix(scalarsMax: Int) -> String {
    String(unicodeScalars.prefix(scalarsMax))
  }

  /// The text, or its first scalars and an ellipsis.
  func shortened(scalarsMax: Int) -> String {
    let start = unicodeScalars.prefix(scalarsMax)
    return start.endIndex == endIndex ? self : String(start) + "…"
  }
}
