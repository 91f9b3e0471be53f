extension String {
  /// The text in one line.
  ///
  /// White space and control characters are replaced by single spaces between words.
  var oneLine: String {
    unicodeScalars
      .split { $0.properties.isWhitespace || $0.properties.generalCategory == .control }
      .map { String($0) }.joined(separator: " ")
  }
}
