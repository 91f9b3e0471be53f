/// Reads JSON (RFC 8259); its builder makes the values.
///
/// A text is one value, nested at most `JSONScanner.depthMax` levels deep.
@usableFromInline
package struct JSONParser<Builder: JSONBuilder> {
  // Inlinable, so that each room gets code made for its own values. The compiler ignores that in
  // silence unless every type in sight is `@usableFromInline`.

  /// The builder that makes the values, with its own notes.
  @usableFromInline package var builder: Builder
  @usableFromInline let loneSurrogates: LoneSurrogates

  /// A parser that makes values with a builder.
  @inlinable
  package init(_ builder: Builder, loneSurrogates: LoneSurrogates = .refused) {
    self.builder = builder
    self.loneSurrogates = loneSurrogates
  }

  /// Reads one value that fills the whole text.
  @inlinable
  package mutating func parse(
    _ text: some Sequence<UInt8>
  ) throws(JSONSyntaxError) -> Builder.Value {
    if let result = text.withContiguousStorageIfAvailable({ document(UnsafeRawBufferPointer($0)) })
    {
      return try result.get()
    }
    return try Array(text).withUnsafeBytes { document($0) }.get()
  }

  /// A `Result`, because closures of the standard library's buffers lose the type of their errors.
  @inlinable
  mutating func document(_ bytes: UnsafeRawBufferPointer) -> Result<Builder.Value, JSONSyntaxError>
  {
    do throws(JSONSyntaxError) {
      var scanner = JSONScanner(bytes, loneSurrogates: loneSurrogates)
      let value = try self.value(&scanner)
      try scanner.finish()
      return .success(value)
    } catch {
      return .failure(error)
    }
  }

  @inlinable
  mutating func value(_ scanner: inout JSONScanner) throws(JSONSyntaxError) -> Builder.Value {
    switch try scanner.token() {
    case .null: return builder.null()
    case .boolean(let flag): return builder.boolean(flag)
    case .string(let text): return builder.string(text)
    case .number(let number, let offset):
      guard let value = builder.number(number) else {
        throw JSONSyntaxError(offset: offset, reason: "a number beyond the range of a double")
      }
      return value
    case .arrayStart:
      if Builder.keepsNumberLists, let numbers = try scanner.numbers() {
        return builder.numbers(numbers)
      }
      var elements: [Builder.Value] = []
      while try scanner.hasElement() { elements.append(try value(&scanner)) }
      return builder.array(elements)
    case .objectStart:
      var members: [(String, Builder.Value)] = []
      while let name = try scanner.name() { members.append((name, try value(&scanner))) }
      return builder.object(members)
    }
  }
}
