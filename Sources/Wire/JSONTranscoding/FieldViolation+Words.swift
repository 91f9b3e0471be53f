package import RuntimeSupport

extension FieldViolation {
  /// A value that its field cannot hold.
  package static func invalidValue(at place: String?, _ type: String, _ words: String)
    -> FieldViolation
  {
    let at = place.map { " at '\($0)'" } ?? ""
    return FieldViolation(field: place, description: "Invalid value\(at) (\(type)), \(words)")
  }

  /// A name that cannot be where it stands.
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
