/// A JSON parser (RFC 8259) whose builder creates the values.
///
/// A text is one value, nested at most `JSONScanner.depthMax` levels deep.
@usableFromInline
package struct JSONParser<Builder: JSONBuilder> {
  // Inlinable so that each module gets code specialized for its own values. The compiler silently
  // skips the specialization unless every type involved is `@usableFromInline`.

  /// The builder that creates the values, with any state of its own.
  @usableFromInline package var builder: Builder
  @usableFromInline let loneSurrogates: LoneSurrogates
  @usableFromInline let valuesMax: Int

  /// Creates a parser that stops with an error at a value beyond `valuesMax`.
  ///
  /// Lists and objects count as well as what they contain.
  @inlinable
  package init(
    _ builder: Builder,
    loneSurrogates: LoneSurrogates = .refused,
    valuesMax: Int = .max
  ) {
    self.builder = builder
    self.loneSurrogates = loneSurrogates
    self.valuesMax = valuesMax
  }

  /// Parses one value that must span the whole text.
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

  /// Parses one value as a `Result`, because the buffer closures lose the type of thrown errors.
  @inlinable
  mutating func document(_ bytes: UnsafeRawBufferPointer) -> Result<Builder.Value, JSONSyntaxError>
  {
    do throws(JSONSyntaxError) {
      var scanner = JSONScanner(bytes, loneSurrogates: loneSurrogates, valuesMax: valuesMax)
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
