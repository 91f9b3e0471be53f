import StatusCodes

/// The checks for input that Pinecone rejects.
extension VectorCatalog {
  /// Throws `INVALID_ARGUMENT` for a description that no index can have.
  package static func check(_ description: VectorIndexDescription) throws {
    let name = description.name.utf8
    let isName = name.allSatisfy { (97...122).contains($0) || (48...57).contains($0) || $0 == 45 }
    guard isName, (1...45).contains(name.count), name.first != 45, name.last != 45 else {
      throw StatusError.invalidArgument(
        "Invalid index name \"\(description.name)\": Name must consist of 1 to 45 lower case "
          + "alphanumeric characters or '-', and must start and end with an alphanumeric character."
      )
    }
    guard (1...20_000).contains(description.dimension) else {
      throw StatusError.invalidArgument(
        "Dimension \(description.dimension) is not between 1 and 20000."
      )
    }
    guard description.tags.count <= 20 else {
      throw StatusError.invalidArgument(
        "An index has at most 20 tags; this one would have \(description.tags.count)."
      )
    }
    for (key, value) in description.tags {
      let isKey = key.utf8.allSatisfy {
        (97...122).contains($0) || (65...90).contains($0) || (48...57).contains($0)
          || $0 == 45 || $0 == 95
      }
      guard isKey, (1...80).contains(key.utf8.count) else {
        throw StatusError.invalidArgument(
          "Invalid tag key \"\(key)\": use 1 to 80 of a-z, A-Z, 0-9, _ and -."
        )
      }
      guard value.utf8.count <= 120, value.utf8.allSatisfy({ (32...126).contains($0) }) else {
        throw StatusError.invalidArgument(
          "Invalid value of tag \"\(key)\": use at most 120 printable ASCII characters."
        )
      }
    }
  }

  /// Throws `INVALID_ARGUMENT` for a record that an index of this dimension cannot contain.
  package static func check(_ record: VectorRecord, dimension: Int) throws {
    try check(id: record.id)
    try check(dimension: record.values.count, expected: dimension)
    guard record.values.allSatisfy(\.isFinite) else {
      throw StatusError.invalidArgument("Vector \(record.id) has a value that is not a number.")
    }
    // Production treats smaller values as zero.
    guard record.values.contains(where: { abs($0) >= 1e-8 }) else {
      throw StatusError.invalidArgument(
        "Dense vectors must contain at least one non-zero value. Vector ID \(record.id) contains "
          + "only zeros."
      )
    }
    for key in record.metadata.keys where key.hasPrefix("$") {
      throw StatusError.invalidArgument(
        "Metadata key \"\(key)\" of vector \(record.id) must not start with $."
      )
    }
    let bytes = record.metadata.contentBytes
    guard bytes <= metadataBytesMax else {
      throw StatusError.invalidArgument(
        "Metadata size is \(bytes) bytes, which exceeds the limit of \(metadataBytesMax) bytes per "
          + "vector: \(record.id)"
      )
    }
  }

  /// Throws `INVALID_ARGUMENT` for an id that no record can have.
  package static func check(id: String) throws {
    guard (1...512).contains(id.utf8.count), id.utf8.allSatisfy({ $0 != 0 && $0 < 128 }) else {
      throw StatusError.invalidArgument(
        "Invalid vector id \(id.prefix(64).debugDescription): an id is 1 to 512 ASCII characters "
          + "without NUL."
      )
    }
  }

  static func check(dimension: Int, expected: Int) throws {
    guard dimension == expected else {
      throw StatusError.invalidArgument(
        "Vector dimension \(dimension) does not match the dimension of the index \(expected)"
      )
    }
  }

  private static let metadataBytesMax = 40_960
}
