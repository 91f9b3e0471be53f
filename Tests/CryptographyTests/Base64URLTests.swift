import Cryptography
import Testing

@Suite("Base64url")
struct Base64URLTests {
  @Test("Decodes what it encodes, at every length")
  func roundTrip() {
    for count in 0..<70 {
      let bytes = (0..<count).map { UInt8(truncatingIfNeeded: $0 &* 37 &+ 251) }

      #expect(Base64URL.decode(Base64URL.encode(bytes)) == bytes)
      #expect(Base64URL.decodeCanonical(Base64URL.encode(bytes)) == bytes)
    }
  }

  @Test(
    "Padding, other alphabets, spaces and impossible lengths are refused",
    arguments: ["a", "ab=", "ab==", "+/", "ab cd", "ab\n", "abcde", "äb"]
  )
  func refused(text: String) {
    #expect(Base64URL.decode(text) == nil)
    #expect(Base64URL.decodeCanonical(text) == nil)
  }

  @Test("Only the form with clear bits at the end is canonical")
  func canonical() {
    #expect(Base64URL.decode("AB") == [0])
    #expect(Base64URL.decodeCanonical("AB") == nil)
    #expect(Base64URL.decodeCanonical("AA") == [0])
    #expect(Base64URL.decode("AAB") == [0, 0])
    #expect(Base64URL.decodeCanonical("AAB") == nil)
    #expect(Base64URL.decodeCanonical("AAE") == [0, 1])
  }
}
