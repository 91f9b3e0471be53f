import DocumentModel
import StatusCodes

/// The checks of a write before anything is read: names, field names, values and transforms.
enum WriteValidation {
  /// Checks one write; throws `INVALID_ARGUMENT` with production's messages.
  ///
  /// Vectors inside arrays and NaN inside vectors are refused unless `takesAnyVector`. Array
  /// transforms store them, as in the official emulator, so a stored document may have them.
  static func check(
    _ write: Write,
    in database: DatabaseName,
    takesAnyVector: Bool = false
  ) throws(StatusError) {
    try NameValidation.check(write.name)
    try NameValidation.check(write.name, isIn: database)
    switch write.operation {
    case .update(_, let fields, let mask, let transforms):
      try check(fields, takesAnyVector: takesAnyVector)
      for path in mask ?? [] where !path.isDocumentID {
        try check(path)
        guard path.segments.count <= DocumentLimits.maskSegmentsMax else {
          throw .invalidArgument(
            "paths must have at most \(DocumentLimits.maskSegmentsMax) elements"
          )
        }
      }
      guard transforms.count <= DocumentLimits.transformsPerDocumentMax else {
        throw .invalidArgument(
          "cannot have more than \(DocumentLimits.transformsPerDocumentMax) field transforms on a "
            + "single document"
        )
      }
      for transform in transforms { try check(transform) }
      try checkOverlap(transforms)
    case .delete: break
    case .verify:
      if case .none = write.precondition {
        throw .invalidArgument("a verify must contain a precondition")
      }
    }
  }

  /// Checks that the writes of one commit to the same document do not contradict one another.
  ///
  /// After a write it is known whether the document exists, so an `exists` precondition that cannot
  /// hold makes the request malformed; it is not a failed precondition.
  static func checkSequence(_ writes: [Write]) throws(StatusError) {
    guard writes.count > 1 else { return }
    var earlier: [DocumentName: Verb] = [:]
    for write in writes {
      let verb = Verb(write)
      if let before = earlier[write.name] { try check(before, then: verb, write.precondition) }
      earlier[write.name] = verb
    }
  }

  private static func check(
    _ before: Verb,
    then verb: Verb,
    _ precondition: Precondition
  ) throws(StatusError) {
    guard before != .verify, verb != .verify else {
      let what =
        before != .verify
        ? "written and then verified"
        : verb == .verify ? "verified more than once" : "verified and then written"
      throw .invalidArgument("the same document cannot be \(what) in a single request")
    }
    let required: Bool
    switch precondition {
    case .none: return
    case .exists(let exists): required = exists
    case .updateTime: required = true
    }
    guard required == (before == .delete) else { return }
    throw .invalidArgument(
      "Cannot \(before.rawValue) then \(verb.rawValue) an entity in the same request."
    )
  }

  /// Production's verb for a write, determined by its operation and precondition.
  private enum Verb: String {
    case upsert, update, insert, delete, verify

    init(_ write: Write) {
      switch write.operation {
      case .delete: self = .delete
      case .verify: self = .verify
      case .update:
        switch write.precondition {
        case .none: self = .upsert
        case .exists(let exists): self = exists ? .update : .insert
        case .updateTime: self = .update
        }
      }
    }
  }

  private static func check(
    _ fields: MapValue,
    takesAnyVector: Bool
  ) throws(StatusError) {
    for (key, value) in fields {
      try check(fieldName: key)
      try check(
        value,
        of: key,
        depth: 0,
        insideArray: false,
        takesAnyVector: takesAnyVector
      )
    }
  }

  private static func check(fieldName name: String) throws(StatusError) {
    if name.isEmpty { throw .invalidArgument("The property.name is the empty string.") }
    if name.utf8.count > DocumentLimits.fieldNameBytesMax {
      throw .invalidArgument(
        "The property.name is longer than \(DocumentLimits.fieldNameBytesMax) bytes."
      )
    }
    if ResourceID.isReserved(name) {
      throw .invalidArgument("field name \(name) is reserved")
    }
  }

  /// Checks a path of a mask or transform, whose syntax was checked when it was decoded.
  static func check(_ path: FieldPath) throws(StatusError) {
    for segment in path.segments {
      if segment.isEmpty { throw .invalidArgument("The property.name is the empty string.") }
      if ResourceID.isReserved(segment) {
        throw .invalidArgument("Invalid reserved name in field path \(segment)")
      }
    }
    guard path.description.utf8.count <= DocumentLimits.fieldPathBytesMax else {
      throw .invalidArgument(
        "property path is longer than \(DocumentLimits.fieldPathBytesMax) bytes."
      )
    }
  }

  private static func check(_ transform: FieldTransform) throws(StatusError) {
    if transform.path.isDocumentID {
      throw .invalidArgument("Cannot apply a transform to \"__name__\".")
    }
    try check(transform.path)
    let property = transform.path.segments[0]
    let depth = transform.path.segments.count - 1
    guard depth <= DocumentLimits.nestingDepthMax else { throw invalidNested(property) }
    switch transform.kind {
    case .requestTime: break
    case .increment(let operand), .maximum(let operand), .minimum(let operand):
      switch operand {
      case .integer, .double: break
      default: throw .invalidArgument("Input must be int64 or double.")
      }
    case .appendMissingElements(let elements), .removeAllFromArray(let elements):
      try check(
        .array(elements),
        of: property,
        depth: depth,
        insideArray: false,
        takesAnyVector: true
      )
    }
  }

  /// Throws if one transform's field is nested in another transform's field.
  private static func checkOverlap(_ transforms: [FieldTransform]) throws(StatusError) {
    guard transforms.count > 1 else { return }
    let paths = Set(transforms.map(\.path))
    for path in paths {
      for length in 1..<path.segments.count {
        let outer = FieldPath(Array(path.segments.prefix(length)))
        guard paths.contains(outer) else { continue }
        throw .invalidArgument(
          "Cannot transform property \(outer) and its nested property at the same time."
        )
      }
    }
  }

  /// Checks a value that is nested in `depth` maps and arrays of the top-level field `property`.
  private static func check(
    _ value: FirestoreValue,
    of property: String,
    depth: Int,
    insideArray: Bool,
    takesAnyVector: Bool
  ) throws(StatusError) {
    switch value {
    case .null, .boolean, .integer, .double, .timestamp, .reference: break
    case .string(let text): try check(bytes: text.utf8.count, of: property, depth: depth)
    case .bytes(let data): try check(bytes: data.count, of: property, depth: depth)
    case .geoPoint(let point): try check(point)
    case .vector(let elements):
      try checkDimensions(of: elements)
      guard !takesAnyVector else { return }
      if insideArray {
        throw .invalidArgument("Cannot convert a vector value in an array value.")
      }
      if elements.contains(where: \.isNaN) {
        throw .invalidArgument("Vector cannot contain NaN values.")
      }
    case .array(let elements):
      if insideArray {
        throw .invalidArgument("Nested arrays are not allowed")
      }
      guard depth < DocumentLimits.nestingDepthMax else { throw invalidNested(property) }
      for element in elements {
        try check(
          element,
          of: property,
          depth: depth + 1,
          insideArray: true,
          takesAnyVector: takesAnyVector
        )
      }
    case .map(let fields):
      guard depth < DocumentLimits.nestingDepthMax else { throw invalidNested(property) }
      for (key, element) in fields {
        try check(nestedKey: key, of: property)
        try check(
          element,
          of: property,
          depth: depth + 1,
          insideArray: false,
          takesAnyVector: takesAnyVector
        )
      }
    }
  }

  private static func check(nestedKey key: String, of property: String) throws(StatusError) {
    // `__type__` is the wire format's mark of a vector; any other use of it is malformed.
    if key.isEmpty || key == "__type__" || key.utf8.count > DocumentLimits.fieldNameBytesMax {
      throw invalidNested(property)
    }
    if ResourceID.isReserved(key) {
      throw .invalidArgument("field name '\(key)' is reserved.")
    }
  }

  private static func check(
    bytes: Int,
    of property: String,
    depth: Int
  ) throws(StatusError) {
    guard bytes > DocumentLimits.valueBytesMax else { return }
    if depth > 0 { throw invalidNested(property) }
    throw .invalidArgument(
      "The value of property \"\(property)\" is longer than \(DocumentLimits.valueBytesMax) bytes."
    )
  }

  private static func check(_ point: GeoPoint) throws(StatusError) {
    guard (-90...90).contains(point.latitude) else {
      throw .invalidArgument(
        "Geo point latitude '\(point.latitude)' outside permitted range -90.0 to 90.0."
      )
    }
    guard (-180...180).contains(point.longitude) else {
      throw .invalidArgument(
        "Geo point longitude '\(point.longitude)' outside permitted range -180.0 to 180.0."
      )
    }
  }

  private static func checkDimensions(of elements: [Double]) throws(StatusError) {
    if elements.isEmpty { throw .invalidArgument("Cannot have a zero length vector.") }
    if elements.count > DocumentLimits.vectorDimensionsMax {
      throw .invalidArgument(
        "Vectors must be at most \(DocumentLimits.vectorDimensionsMax) dimensions."
      )
    }
  }

  private static func invalidNested(_ property: String) -> StatusError {
    .invalidArgument("Property \(property) contains an invalid nested entity.")
  }
}
