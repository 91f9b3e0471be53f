/// Random identifiers of the shape that Firestore clients make.
package enum RandomID {
  private static let alphabet = Array(
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789".utf8
  )

  /// `length` characters of `[A-Za-z0-9]`; 20 is the length of an automatic document id.
  package static func make(
    length: Int = 20,
    using generator: inout some RandomNumberGenerator
  ) -> String {
    String(
      decoding: (0..<length).map { _ in
        alphabet[Int.random(in: 0..<alphabet.count, using: &generator)]
      },
      as: UTF8.self
    )
  }

  /// `length` characters of `[A-Za-z0-9]` from the system's generator.
  package static func make(length: Int = 20) -> String {
    var generator = SystemRandomNumberGenerator()
    return make(length: length, using: &generator)
  }
}
