/// The members of a text that is one object, each as written; nil for other JSON.
///
/// For members that are passed on unchanged: no number loses a digit and no key its place. The
/// whole text is checked; of equal names the last one counts.
package func jsonMembers(
  of text: [UInt8],
  loneSurrogates: LoneSurrogates = .refused
) throws(JSONSyntaxError) -> [String: [UInt8]]? {
  let result = text.withUnsafeBytes { bytes -> Result<[String: [UInt8]]?, JSONSyntaxError> in
    do throws(JSONSyntaxError) {
      var scanner = JSONScanner(bytes, loneSurrogates: loneSurrogates)
      return .success(try members(&scanner, of: text))
    } catch {
      return .failure(error)
    }
  }
  return try result.get()
}

private func members(
  _ scanner: inout JSONScanner,
  of text: [UInt8]
) throws(JSONSyntaxError) -> [String: [UInt8]]? {
  var parser = JSONParser(NoValues(), loneSurrogates: scanner.loneSurrogates)
  scanner.skipSpace()
  guard scanner.byte == UInt8(ascii: "{") else {
    try parser.value(&scanner)
    try scanner.finish()
    return nil
  }
  _ = try scanner.token()
  var members: [String: [UInt8]] = [:]
  while let name = try scanner.name() {
    let start = scanner.index
    try parser.value(&scanner)
    members[name] = Array(text[start..<scanner.index])
  }
  try scanner.finish()
  return members
}

/// Checks a text and keeps none of its values.
private struct NoValues: JSONBuilder {
  func null() {}
  func boolean(_ flag: Bool) {}
  func number(_ number: JSONNumber) -> Void? { number.double.isFinite ? () : nil }
  func string(_ text: String) {}
  func array(_ elements: [Void]) {}
  func object(_ members: [(String, Void)]) {}
}
