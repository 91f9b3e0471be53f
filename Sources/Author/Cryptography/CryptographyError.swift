/// An error of a cryptographic operation; its message contains no key and no secret.
package struct CryptographyError: Error, Hashable, CustomStringConvertible {
  package var message: String

  init(_ message: String) { self.message = message }

  package var description: String { message }
}
