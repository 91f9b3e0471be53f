package import StatusCodes

extension FieldViolation {
  /// Returns a violation for a value that its field cannot hold.
  package static func invalidValue(at place: String?, _ type: String, _ words: String)
    -> FieldViolation
  {
    let at = place.map { " at '\($0)'" } ?? ""
    return FieldViolation(field: place, description: "Invalid value\(at) (\(type)), \(words)")
  }

  /// Returns a violation for a name that is not allowed in its place.
  package static func unknownName(_ name: String, at place: String?, _ words: String)
    -> FieldViolation
  {
    let at = place.map { " at '\($0)'" } ?? ""
    return FieldViolation(
      field: place,
      description: "Invalid JSON payload received. Unknown name \"\(name)\"\(at): \(words)"
    )
  }
}
