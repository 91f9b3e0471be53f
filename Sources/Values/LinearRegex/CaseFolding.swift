/// The scalars that differ by case alone, by Unicode's simple case folding.
enum CaseFolding {
  /// Returns true if `scalar` or any of its other cases satisfies `body`.
  static func anyCase(of scalar: UInt32, satisfies body: (UInt32) -> Bool) -> Bool {
    if body(scalar) { return true }
    if scalar < 0x80 {
      switch scalar {
      case 0x41...0x5A, 0x61...0x7A:
        if body(scalar ^ 0x20) { return true }
        if scalar | 0x20 == 0x6B { return body(0x212A) }
        if scalar | 0x20 == 0x73 { return body(0x017F) }
        return false
      default: return false
      }
    }
    if let orbit = irregularOrbits[scalar] { return orbit.contains(where: body) }
    guard let value = Unicode.Scalar(scalar), value.properties.changesWhenCaseMapped else {
      return false
    }
    let properties = value.properties
    for mapping in [
      properties.lowercaseMapping, properties.uppercaseMapping, properties.titlecaseMapping,
    ] {
      if let other = single(mapping), other != scalar, body(other) { return true }
    }
    return false
  }

  private static func single(_ text: String) -> UInt32? {
    let scalars = text.unicodeScalars
    guard let first = scalars.first, scalars.count == 1 else { return nil }
    return first.value
  }

  /// The scalars with three or more cases, and those whose case mappings are not symmetric.
  ///
  /// The dotted and the dotless i have no other case in simple folding.
  private static let irregularOrbits: [UInt32: [UInt32]] = {
    let orbits: [[UInt32]] = [
      [0x4B, 0x6B, 0x212A], [0x53, 0x73, 0x017F], [0xC5, 0xE5, 0x212B], [0xDF, 0x1E9E],
      [0xB5, 0x039C, 0x03BC], [0x01C4, 0x01C5, 0x01C6], [0x01C7, 0x01C8, 0x01C9],
      [0x01CA, 0x01CB, 0x01CC], [0x01F1, 0x01F2, 0x01F3], [0x0345, 0x0399, 0x03B9, 0x1FBE],
      [0x0392, 0x03B2, 0x03D0], [0x0395, 0x03B5, 0x03F5], [0x0398, 0x03B8, 0x03D1, 0x03F4],
      [0x039A, 0x03BA, 0x03F0], [0x03A0, 0x03C0, 0x03D6], [0x03A1, 0x03C1, 0x03F1],
      [0x03A3, 0x03C2, 0x03C3], [0x03A6, 0x03C6, 0x03D5], [0x03A9, 0x03C9, 0x2126],
      [0x0412, 0x0432, 0x1C80], [0x0414, 0x0434, 0x1C81], [0x041E, 0x043E, 0x1C82],
      [0x0421, 0x0441, 0x1C83], [0x0422, 0x0442, 0x1C84, 0x1C85], [0x042A, 0x044A, 0x1C86],
      [0x0462, 0x0463, 0x1C87], [0x1C88, 0xA64A, 0xA64B], [0x1E60, 0x1E61, 0x1E9B],
      [0x0130], [0x0131],
    ]
    var table: [UInt32: [UInt32]] = [:]
    for orbit in orbits {
      for scalar in orbit { table[scalar] = orbit }
    }
    return table
  }()
}
