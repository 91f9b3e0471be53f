extension String {
  /// The text in one line: white space and control characters become single spaces between words.
  var oneLine: String {
    unicodeScalars
      .split { $0.properties.isWhitespace || $0.properties.generalCategory == .control }
      .map { String($0) }.joined(separator: " ")
  }
}
