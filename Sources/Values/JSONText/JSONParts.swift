#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// Returns the members of a text that is one object, each as written; nil for other JSON.
///
/// It is meant for members that are passed on unchanged: numbers keep every digit and keys their
/// order. The whole text is validated. Of members with the same name, the last one counts.
package func jsonMembers(
  of text: [UInt8],
  loneSurrogates: LoneSurrogates = .refused
) throws(JSONSyntaxError) -> [String: [UInt8]]? {
  try jsonMembersInOrder(of: text, loneSurrogates: loneSurrogates).map { members in
    Dictionary(members) { _, last in last }
  }
}

/// Returns the members of a text that is one object, in order and with repeated names; nil for
/// other JSON.
///
/// Each member is returned as written. The whole text is validated.
package func jsonMembersInOrder(
  of text: [UInt8],
  loneSurrogates: LoneSurrogates = .refused
) throws(JSONSyntaxError) -> [(name: String, value: [UInt8])]? {
  var members: [(name: String, value: [UInt8])] = []
  let isObject = try parts(of: text, in: "{", loneSurrogates) {
    (scanner, value) throws(JSONSyntaxError) in
    while let name = try scanner.name() { members.append((name, Array(text[try value(&scanner)]))) }
  }
  return isObject ? members : nil
}

/// Returns the elements of a text that is one array, each as written; nil for other JSON.
///
/// The whole text is validated.
package func jsonElements(
  of text: [UInt8],
  loneSurrogates: LoneSurrogates = .refused
) throws(JSONSyntaxError) -> [[UInt8]]? {
  var elements: [[UInt8]] = []
  let isArray = try parts(of: text, in: "[", loneSurrogates) {
    (scanner, value) throws(JSONSyntaxError) in
    while try scanner.hasElement() {
      scanner.skipSpace()
      elements.append(Array(text[try value(&scanner)]))
    }
  }
  return isArray ? elements : nil
}

/// Validates a text and passes its parts to `take` if it begins with `opening`.
///
/// Returns true if it does. `take` receives a function that returns the range of the next value.
private func parts(
  of text: [UInt8],
  in opening: Unicode.Scalar,
  _ loneSurrogates: LoneSurrogates,
  _ take: (
    inout JSONScanner,
    (inout JSONScanner) throws(JSONSyntaxError) -> Range<Int>
  ) throws(JSONSyntaxError) -> Void
) throws(JSONSyntaxError) -> Bool {
  let result = text.withUnsafeBytes { bytes -> Result<Bool, JSONSyntaxError> in
    do throws(JSONSyntaxError) {
      var scanner = JSONScanner(bytes, loneSurrogates: loneSurrogates)
      func value(_ scanner: inout JSONScanner) throws(JSONSyntaxError) -> Range<Int> {
        let start = scanner.index
        var parser = JSONParser(NoValues(), loneSurrogates: loneSurrogates)
        try parser.value(&scanner)
        return start..<scanner.index
      }
      scanner.skipSpace()
      let isFound = scanner.byte == UInt8(ascii: opening)
      if isFound {
        _ = try scanner.token()
        try take(&scanner, value)
      } else {
        _ = try value(&scanner)
      }
      try scanner.finish()
      return .success(isFound)
    } catch {
      return .failure(error)
    }
  }
  return try result.get()
}

/// Throws if a text is not JSON or has more than `valuesMax` values.
func checkJSON(_ text: Data, valuesMax: Int) throws(JSONSyntaxError) {
  var parser = JSONParser(NoValues(), loneSurrogates: .replaced, valuesMax: valuesMax)
  try parser.parse(text)
}

/// A builder that validates a text and keeps no values.
private struct NoValues: JSONBuilder {
  func null() {}
  func boolean(_ flag: Bool) {}
  func number(_ number: JSONNumber) -> Void? { number.double.isFinite ? () : nil }
  func string(_ text: String) {}
  func array(_ elements: [Void]) {}
  func object(_ members: [(String, Void)]) {}
}
