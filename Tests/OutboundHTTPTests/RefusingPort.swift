import LibC

/// A port of 127.0.0.1 that refuses every connection while this object exists.
///
/// The port is bound, so that no other test gets it, but no socket listens on it.
final class RefusingPort {
  let number: Int
  private let descriptor: Int32

  init() throws {
    #if canImport(Glibc)
      let socket = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
    #else
      let socket = socket(AF_INET, SOCK_STREAM, 0)
    #endif
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
    var length = socklen_t(MemoryLayout<sockaddr_in>.size)
    let isBound = withUnsafeMutablePointer(to: &address) {
      $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        bind(socket, $0, length) == 0 && getsockname(socket, $0, &length) == 0
      }
    }
    descriptor = socket
    number = Int(UInt16(bigEndian: address.sin_port))
    guard isBound else { throw BindError(number: errno) }
  }

  deinit { close(descriptor) }

  struct BindError: Error {
    var number: Int32
  }
}
