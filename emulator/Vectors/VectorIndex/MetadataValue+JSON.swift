package import JSONText

extension MetadataValue {
  /// Creates a value from JSON; nil for an unsupported kind.
  package init?(_ json: JSONValue) {
    switch json {
    case .string(let text): self = .string(text)
    case .number(let number): self = .number(number)
    case .boolean(let flag): self = .boolean(flag)
    default:
      guard let texts = json.strings else { return nil }
      self = .strings(texts)
    }
  }

  /// The value as JSON.
  package var json: JSONValue {
    switch self {
    case .string(let text): .string(text)
    case .number(let number): .number(number)
    case .boolean(let flag): .boolean(flag)
    case .strings(let texts): .array(texts.map { .string($0) })
    }
  }
}
