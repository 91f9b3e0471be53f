import COpenSSL
import Testing

@testable import Cryptography

@Suite("scrypt")
struct ScryptTests {
  @Test(
    "Keys are those of RFC 7914",
    arguments: [
      (
        "", "", Scrypt(rounds: 16, blockSize: 1, parallelism: 1),
        "77d6576238657b203b19ca42c18a0497f16b4844e3074ae8dfdffa3fede21442"
          + "fcd0069ded0948f8326a753a0fc81f17e8d3e0fb2e0d3628cf35e20c38d18906"
      ),
      (
        "password", "NaCl", Scrypt(rounds: 1024, blockSize: 8, parallelism: 16),
        "fdbabe1c9d3472007856e7190d01e9fe7c6ad7cbc8237830e77376634b373162"
          + "2eaf30d92e22a3886ff109279d9830dac727afb94a83ee6d8360cbdfa2cc0640"
      ),
      (
        "pleaseletmein", "SodiumChloride", Scrypt(rounds: 16_384, blockSize: 8, parallelism: 1),
        "7023bdcb3afd7348461c06cd81fd38ebfda8fbba904f8e3ea9b543f6545da1f2"
          + "d5432955613f0fcf62d49705242a9af9e61e85dc0d651e40dfcf017b45575887"
      ),
    ]
  )
  func knownKeys(password: String, salt: String, scrypt: Scrypt, digits: String) throws {
    let key = try scrypt.key(for: Array(password.utf8), salt: Array(salt.utf8), byteCount: 64)

    #expect(key == bytes(digits))
  }

  @Test(
    "Rounds that are no power of two, no parallelism, and too much memory are refused",
    arguments: [
      Scrypt(rounds: 1000, blockSize: 8, parallelism: 1),
      Scrypt(rounds: 0, blockSize: 8, parallelism: 1),
      Scrypt(rounds: 1024, blockSize: 8, parallelism: 0),
      Scrypt(rounds: 1024, blockSize: 0, parallelism: 1),
      Scrypt(rounds: 1 << 20, blockSize: 8, parallelism: 1),
    ]
  )
  func refused(scrypt: Scrypt) {
    let error = #expect(throws: CryptographyError.self) {
      try scrypt.key(for: Array("secret".utf8), salt: [], byteCount: 32)
    }

    #expect(error?.message.contains("\(scrypt.rounds) rounds") == true)
    #expect(error?.message.contains("secret") == false)
    #expect(ERR_peek_error() == 0)
  }
}
