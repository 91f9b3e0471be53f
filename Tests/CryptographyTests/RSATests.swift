import COpenSSL
import TestSupport
import Testing

@testable import Cryptography

@Suite("RSA")
struct RSATests {
  private let exponent: [UInt8] = [1, 0, 1]

  private func publicKey(_ index: Int = 0) throws -> RSAPublicKey {
    let modulus = try #require(Base64URL.decode(SampleKeys.moduli[index]))
    return try RSAPublicKey(modulus: modulus, exponent: exponent)
  }

  @Test("A signature of the openssl command is valid, for its message and its key")
  func knownSignature() throws {
    let signature = try #require(Base64URL.decode(OpenSSLSamples.signature))
    let message = OpenSSLSamples.message

    #expect(try publicKey().isValid(signature, for: message))
    #expect(try !publicKey().isValid(signature, for: message + [0]))
    #expect(try !publicKey().isValid(signature, for: []))
    #expect(try !publicKey(1).isValid(signature, for: message))
  }

  @Test("A key signs like the openssl command, from PKCS #1 and from PKCS #8")
  func sameSignature() throws {
    for pem in [SampleKeys.pems[0], OpenSSLSamples.pkcs8PEM] {
      let signature = try RSAPrivateKey(pem: pem).signature(for: OpenSSLSamples.message)

      #expect(Base64URL.encode(signature) == OpenSSLSamples.signature)
    }
  }

  @Test(
    "Signatures of the same key with another padding or digest are not valid",
    arguments: ["PSS", "SHA-1", "SHA-512"]
  )
  func otherAlgorithms(name: String) throws {
    let text = try #require(OpenSSLSamples.otherSignatures[name])
    let signature = try #require(Base64URL.decode(text))

    #expect(try !publicKey().isValid(signature, for: OpenSSLSamples.message))
    #expect(ERR_peek_error() == 0)
  }

  @Test("A signature of another length or with one changed bit is not valid")
  func changedSignatures() throws {
    let signature = try #require(Base64URL.decode(OpenSSLSamples.signature))
    let modulus = try #require(Base64URL.decode(SampleKeys.moduli[0]))
    var changed = [
      [], [0], Array(signature.dropLast()), Array(signature.dropFirst()), signature + [0],
      [0] + signature, signature + signature, [UInt8](repeating: 0, count: signature.count),
      [UInt8](repeating: 255, count: signature.count), modulus,
    ]
    for index in [0, 1, 100, 255] {
      var other = signature
      other[index] ^= 0x10
      changed.append(other)
    }
    let key = try publicKey()
    for other in changed {
      #expect(!key.isValid(other, for: OpenSSLSamples.message))
      // libcurl on the same thread would take a leftover for an error of its own.
      #expect(ERR_peek_error() == 0)
    }
  }

  @Test("Short keys are refused, private and public")
  func shortKeys() throws {
    let modulus = try #require(Base64URL.decode(SampleKeys.shortModulus))
    let long = try #require(Base64URL.decode(SampleKeys.moduli[0]))
    // One bit less than 2048, and leading zeros, which do not make a number longer.
    var almost = long
    almost[0] = 0x7f

    for numbers in [modulus, [UInt8](repeating: 0, count: 128) + modulus, almost] {
      let error = #expect(throws: CryptographyError.self) {
        try RSAPublicKey(modulus: numbers, exponent: exponent)
      }
      #expect(error?.message.contains("2048") == true)
    }
    let error = #expect(throws: CryptographyError.self) {
      try RSAPrivateKey(pem: SampleKeys.shortPEM)
    }
    #expect(error?.message.contains("1024 bits") == true)
  }

  @Test("Numbers that are no RSA key are refused")
  func badNumbers() throws {
    let modulus = try #require(Base64URL.decode(SampleKeys.moduli[0]))
    var even = modulus
    even[255] ^= 1
    let refused: [([UInt8], [UInt8])] = [
      ([], exponent), (modulus, []), (modulus, [0]), (modulus, [1]), (modulus, [3]),
      (modulus, [0, 0, 3]), (modulus, [1, 0, 0]), (modulus, [UInt8](repeating: 255, count: 9)),
      (even, exponent), ([UInt8](repeating: 255, count: 2050), exponent),
      (modulus, modulus),
    ]
    for (modulus, exponent) in refused {
      #expect(throws: CryptographyError.self) {
        try RSAPublicKey(modulus: modulus, exponent: exponent)
      }
      #expect(ERR_peek_error() == 0)
    }
    #expect(throws: Never.self) {
      try RSAPublicKey(modulus: [0] + modulus, exponent: [0] + exponent)
    }
  }

  @Test("A private key that is encrypted, public, of another kind or no key at all is refused")
  func badPEM() {
    let good = SampleKeys.pems[0]
    let refused = [
      "", "SECRET", "-----BEGIN PRIVATE KEY-----\n-----END PRIVATE KEY-----\n",
      SampleKeys.publicPEM, OpenSSLSamples.encryptedPEM, OpenSSLSamples.encryptedPKCS1PEM,
      OpenSSLSamples.ellipticPEM, OpenSSLSamples.pssPEM, String(good.dropLast(200)),
      good.replacing("MIIEoAIB", with: "MIIEoAIC"), String(repeating: "\n", count: 70_000) + good,
    ]
    for (index, text) in refused.enumerated() {
      let error = #expect(throws: CryptographyError.self, "\(index)") {
        try RSAPrivateKey(pem: text)
      }
      #expect(error?.message.contains("SECRET") == false)
      #expect(ERR_peek_error() == 0)
    }
  }

  @Test("Many threads use the same keys at once")
  func threads() async throws {
    let signer = try RSAPrivateKey(pem: SampleKeys.pems[0])
    let verifier = try publicKey()

    try await withThrowingTaskGroup(of: Bool.self) { group in
      for number in 0..<64 {
        group.addTask {
          let message = Array("message \(number)".utf8)
          let signature = try signer.signature(for: message)
          return verifier.isValid(signature, for: message)
            && !verifier.isValid(signature, for: message + [0])
        }
      }
      for try await isRight in group { #expect(isRight) }
    }
  }
}
