import LibC

/// The order of keys in every engine: by unsigned bytes, with a prefix before longer keys.
package enum KeyOrder {
  /// Compares keys: negative if `left` comes first, positive if `right` does, and 0 if equal.
  package static func compare(_ left: [UInt8], _ right: [UInt8]) -> Int {
    let order = left.withUnsafeBytes { a in
      right.withUnsafeBytes { b -> Int in
        let shared = min(a.count, b.count)
        guard shared > 0, let x = a.baseAddress, let y = b.baseAddress else { return 0 }
        return Int(memcmp(x, y, shared))
      }
    }
    return order != 0 ? order : left.count - right.count
  }
}
