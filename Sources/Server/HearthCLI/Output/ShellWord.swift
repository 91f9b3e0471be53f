extension String {
  /// The text as one word for a shell, in quotes if it needs them.
  var shellWord: String {
    let isPlain =
      !isEmpty
      && utf8.allSatisfy { byte in
        (48...57).contains(byte) || (65...90).contains(byte) || (97...122).contains(byte)
          || "_./~+,=-:@".utf8.contains(byte)
      }
    guard !isPlain else { return self }
    return "'"
      + split(separator: "'", omittingEmptySubsequences: false).joined(separator: "'\\''") + "'"
  }
}
