import COpenSSL
import Testing

@testable import Cryptography

/// Returns the bytes of hexadecimal digits.
func bytes(_ digits: String) -> [UInt8] {
  let values = digits.compactMap(\.hexDigitValue)
  return stride(from: 0, to: values.count - 1, by: 2).map {
    UInt8(values[$0] << 4 | values[$0 + 1])
  }
}

@Suite("Digests")
struct DigestTests {
  @Test(
    "SHA-256 has the values of FIPS 180-4",
    arguments: [
      ("", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"),
      ("abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"),
      (
        "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
        "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"
      ),
      (
        String(repeating: "a", count: 1_000_000),
        "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0"
      ),
    ]
  )
  func sha256(text: String, digits: String) {
    #expect(SHA256.hash(data: Array(text.utf8)) == bytes(digits))
  }

  @Test(
    "MD5 has the values of RFC 1321",
    arguments: [
      ("", "d41d8cd98f00b204e9800998ecf8427e"), ("a", "0cc175b9c0f1b6a831c399e269772661"),
      ("abc", "900150983cd24fb0d6963f7d28e17f72"),
      ("message digest", "f96b697d7cb7938d525a2f31aaf161d0"),
      (
        String(repeating: "1234567890", count: 8), "57edf4a22be3c955ac49da2e2107b67a"
      ),
    ]
  )
  func md5(text: String, digits: String) {
    #expect(MD5.hash(data: Array(text.utf8)) == bytes(digits))
  }

  @Test(
    "HMAC with SHA-256 has the values of RFC 4231, with short, long and empty keys",
    arguments: [
      (
        [UInt8](repeating: 0x0b, count: 20), "Hi There",
        "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7"
      ),
      (
        Array("Jefe".utf8), "what do ya want for nothing?",
        "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"
      ),
      (
        [UInt8](repeating: 0xaa, count: 131),
        "Test Using Larger Than Block-Size Key - Hash Key First",
        "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54"
      ),
      ([], "", "b613679a0814d9ec772f95d778c35fc5ff1697c493715653c6c712144292c5ad"),
    ]
  )
  func hmac(key: [UInt8], text: String, digits: String) {
    let message = Array(text.utf8)
    let code = HMACSHA256.code(for: message, key: key)

    #expect(code == bytes(digits))
    #expect(HMACSHA256.isValid(code, for: message, key: key))
    #expect(!HMACSHA256.isValid(code, for: message + [0], key: key))
    #expect(!HMACSHA256.isValid(code, for: message, key: key + [1]))
    #expect(!HMACSHA256.isValid(Array(code.dropLast()), for: message, key: key))
    #expect(!HMACSHA256.isValid([], for: message, key: key))
  }

  @Test("Texts are equal only if their lengths and all of their bytes are")
  func constantTime() {
    let text: [UInt8] = Array("a secret".utf8)

    #expect(ConstantTime.isEqual(text, text))
    #expect(ConstantTime.isEqual([], []))
    #expect(!ConstantTime.isEqual(text, []))
    #expect(!ConstantTime.isEqual(text, Array(text.dropLast())))
    for index in text.indices {
      var other = text
      other[index] ^= 1
      #expect(!ConstantTime.isEqual(text, other))
    }
  }

  @Test("Hashes come from many threads at once")
  func threads() async {
    await withTaskGroup(of: Bool.self) { group in
      for number in 0..<200 {
        group.addTask {
          let text = Array("\(number)".utf8)
          return MD5.hash(data: text) == MD5.hash(data: text)
            && SHA256.hash(data: text) == SHA256.hash(data: text)
        }
      }
      for await isEqual in group { #expect(isEqual) }
    }
  }
}
