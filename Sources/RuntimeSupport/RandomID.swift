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
    var characters: [UInt8] = []
    characters.reserveCapacity(length)
    while characters.count < length {
      // A system call each, so all of its bits are used: ten pieces of six, as large as an index.
      var bits = generator.next()
      for _ in 0..<10 where characters.count < length {
        let index = Int(bits & 0x3f)
        bits >>= 6
        // Dropping the two values that are none keeps the others equally likely.
        if index < alphabet.count { characters.append(alphabet[index]) }
      }
    }
    return String(decoding: characters, as: UTF8.self)
  }

  /// `length` characters of `[A-Za-z0-9]` from the system's generator.
  package static func make(length: Int = 20) -> String {
    var generator = SystemRandomNumberGenerator()
    return make(length: length, using: &generator)
  }
}
