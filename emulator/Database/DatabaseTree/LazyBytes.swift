import Synchronization

/// Bytes that are computed by the first reader.
final class LazyBytes: Sendable {
  private let bytes = Mutex<[UInt8]?>(nil)

  func value(_ make: () -> [UInt8]) -> [UInt8] {
    bytes.withLock { bytes in
      if let bytes { return bytes }
      let made = make()
      bytes = made
      return made
    }
  }
}
