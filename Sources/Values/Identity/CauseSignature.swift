import Cryptography
import Identifiers

/// The signature by which this process knows the causes of its invocations from made-up ones.
///
/// A cause decides which events belong to one chain, and the events of a chain that is too long
/// reach no function. Without a signature, a client could suppress the events of its own writes. A
/// worker returns the cause of its invocation with its signature unchanged.
package enum CauseSignature {
  /// The key is new in each process, because workers do not outlive the server that invoked them.
  private static let key = Array(RandomID.make(length: 40).utf8)

  /// Returns the cause `{delivery's id};{depth}` in the form that workers receive.
  package static func signed(_ cause: String) -> String {
    "\(cause);;\(Base64URL.encode(HMACSHA256.code(for: Array(cause.utf8), key: key)))"
  }

  /// Returns the cause in a client's header, with its trace and without its signature.
  ///
  /// Of a cause that this process has not signed, only the trace remains.
  package static func verified(_ header: String?) -> String? {
    guard let header else { return nil }
    let parts = header.split(separator: ";", maxSplits: 3, omittingEmptySubsequences: false)
    guard parts.count == 4, let signature = Base64URL.decode(parts[3]),
      HMACSHA256.isValid(signature, for: Array("\(parts[0]);\(parts[1])".utf8), key: key)
    else { return parts.count > 2 ? ";;\(parts[2])" : nil }
    return parts[..<3].joined(separator: ";")
  }
}
