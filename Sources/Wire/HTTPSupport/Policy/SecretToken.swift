package import HTTPTypes

/// A random text that shows that a request comes from a client who was given it.
package struct SecretToken: Sendable {
  package let text: String

  package init(_ text: String) {
    self.text = text
  }

  /// Returns true if a text is the token; the time it takes does not depend on where they differ.
  package func matches(_ candidate: some StringProtocol) -> Bool {
    let candidate = candidate.utf8
    let expected = text.utf8
    return candidate.count == expected.count
      && zip(candidate, expected).reduce(0) { $0 | ($1.0 ^ $1.1) } == 0
  }

  /// Returns true if a request has the token as `Authorization: Bearer TOKEN`.
  package func isBearer(of headers: HTTPFields) -> Bool {
    guard let given = headers[.authorization], given.hasPrefix("Bearer ") else { return false }
    return matches(given.dropFirst("Bearer ".count))
  }
}
