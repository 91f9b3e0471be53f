import DocumentModel
import TestSupport
import Testing

@Suite("Stored form of values")
struct DocumentCodingTests {
  @Test("Every document comes back as it was")
  func roundTrips() throws {
    var values = RandomValues(random: SeededGenerator.forTest())
    for _ in 0..<2000 {
      let document = Self.document(&values)
      var encoder = BinaryEncoder()
      encoder.append(document)
      var decoder = BinaryDecoder(encoder.bytes)
      let decoded = try decoder.document()

      #expect(decoded == document)
      #expect(decoder.isAtEnd)
    }
  }

  @Test("Selected fields come back as they were, and no others")
  func selections() throws {
    var values = RandomValues(random: SeededGenerator.forTest())
    for _ in 0..<1000 {
      var document = Self.document(&values)
      document.fields["m"] = .map(values.fields())
      document.fields["z"] = .vector([1])
      let paths = Self.paths(document.fields).filter { _ in
        Int.random(in: 0..<3, using: &values.random) == 0
      }
      let missing = [FieldPath(["none"]), FieldPath(["z", "none"]), .documentID]
      var encoder = BinaryEncoder()
      encoder.append(document)
      var decoder = BinaryDecoder(encoder.bytes)
      let selected = try decoder.document(only: FieldSelection(paths + missing))

      #expect(selected.name == document.name && selected.updateTime == document.updateTime)
      for path in paths + missing where !path.isDocumentID {
        #expect(selected.fields[path] == document.fields[path])
      }
      for path in Self.paths(selected.fields) {
        let isWanted = paths.contains { $0.isBelowOrEqual(to: path) || path.isBelowOrEqual(to: $0) }
        #expect(isWanted, "\(path) was not selected")
      }
    }
  }

  @Test("Fields are found in what was stored before maps had an order")
  func unordered() throws {
    var encoder = BinaryEncoder()
    encoder.append(byte: 1)
    encoder.append(
      DocumentName(database: DatabaseName(project: "p"), path: ResourcePath(["c", "1"]))
    )
    for number: Int64 in [1, 2] { encoder.append(signed: number) }
    encoder.append(UInt64(3))
    for (name, value) in [("z", Int64(1)), ("a", 2), ("m", 3)] {
      encoder.append(name)
      encoder.append(FirestoreValue.integer(value))
    }
    for (name, value) in [("z", Int64(1)), ("a", 2), ("m", 3)] {
      var decoder = BinaryDecoder(encoder.bytes)
      let selected = try decoder.document(only: FieldSelection([FieldPath([name])]))
      #expect(selected.fields == [name: .integer(value)])
    }
  }

  /// Returns the paths of all values, including those in nested maps.
  private static func paths(_ fields: MapValue) -> [FieldPath] {
    fields.flatMap { name, value in
      guard case .map(let inner) = value else { return [FieldPath([name])] }
      return [FieldPath([name])] + paths(inner).map { FieldPath([name] + $0.segments) }
    }
  }

  @Test("Cut short it throws, at every place")
  func truncationThrows() {
    var values = RandomValues(random: SeededGenerator.forTest())
    for _ in 0..<60 {
      var encoder = BinaryEncoder()
      encoder.append(Self.document(&values))
      for length in 0..<encoder.bytes.count {
        #expect(throws: CorruptDataError.self) {
          var decoder = BinaryDecoder(Array(encoder.bytes.prefix(length)))
          _ = try decoder.document()
        }
      }
    }
  }

  @Test("Changed bytes and noise throw or decode, and never trap")
  func garbageIsSafe() {
    var values = RandomValues(random: SeededGenerator.forTest())
    for round in 0..<4000 {
      var bytes: [UInt8]
      if round.isMultiple(of: 2) {
        var encoder = BinaryEncoder()
        encoder.append(Self.document(&values))
        bytes = encoder.bytes
        for _ in 0..<3 {
          bytes[Int.random(in: 0..<bytes.count, using: &values.random)] =
            UInt8.random(in: 0...255, using: &values.random)
        }
      } else {
        bytes = [1] + (0..<60).map { _ in UInt8.random(in: 0...15, using: &values.random) }
      }
      var partial = BinaryDecoder(bytes)
      _ = try? partial.document(
        only: FieldSelection([FieldPath(["a"]), FieldPath(["none", "b"])])
      )
      var decoder = BinaryDecoder(bytes)
      guard let document = try? decoder.document() else { continue }
      // Decoded documents can be described, compared and encoded.
      _ = "\(document.updateTime)\(document.name)"
      var encoder = KeyEncoder()
      encoder.append(.map(document.fields))
      #expect(ValueOrder.areEqual(.map(document.fields), .map(document.fields)))
    }
  }

  @Test("Endless nesting throws before the stack ends")
  func nestingIsBounded() {
    // An array of one array of one array …
    let bytes = (0..<2_000_000).map { UInt8($0.isMultiple(of: 2) ? 10 : 1) }

    #expect(throws: CorruptDataError.self) {
      var decoder = BinaryDecoder(bytes)
      _ = try decoder.value()
    }
  }

  @Test("A count beyond the end throws before memory is reserved")
  func countsAreBounded() {
    for tag in [UInt8(6), 7, 10, 11, 12] {
      #expect(throws: CorruptDataError.self) {
        var decoder = BinaryDecoder([tag, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0x7F])
        _ = try decoder.value()
      }
    }
  }

  @Test("Numbers of every length come back")
  func numbers() throws {
    for shift in 0..<64 {
      for number in [UInt64(1) << shift, (UInt64(1) << shift) - 1, .max] {
        var encoder = BinaryEncoder()
        encoder.append(number)
        encoder.append(signed: Int64(bitPattern: number))
        var decoder = BinaryDecoder(encoder.bytes)
        #expect(try decoder.number() == number)
        #expect(try decoder.signed() == Int64(bitPattern: number))
      }
    }
  }

  @Test(
    "A number that does not fit 64 bits throws",
    arguments: [
      [UInt8](repeating: 0xFF, count: 9) + [2], [UInt8](repeating: 0x80, count: 10) + [0],
    ]
  )
  func oversizedNumbers(bytes: [UInt8]) {
    #expect(throws: CorruptDataError.self) {
      var decoder = BinaryDecoder(bytes)
      _ = try decoder.number()
    }
  }

  @Test("Text that is not UTF-8 throws instead of changing")
  func invalidText() {
    #expect(throws: CorruptDataError.self) {
      var decoder = BinaryDecoder([2, 0xC3, 0x28])
      _ = try decoder.text()
    }
  }

  private static func document(
    _ values: inout RandomValues<SeededGenerator>
  ) -> FirestoreDocument {
    FirestoreDocument(
      name: values.documentName(),
      fields: values.fields(),
      createTime: Timestamp(microseconds: values.integer()),
      updateTime: Timestamp(microseconds: values.integer())
    )
  }
}
