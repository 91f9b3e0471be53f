/// A JSON Schema in the subset that strict structured outputs support.
struct StrictSchema {
  private let root: JSON

  /// The nesting depth beyond which the API rejects a schema; it also stops recursive references.
  private static let depthMax = 10
  /// The JSON Schema keywords that strict mode rejects.
  private static let refused = [
    "allOf", "oneOf", "not", "if", "then", "else", "dependentRequired", "dependentSchemas",
    "patternProperties",
  ]

  init(_ root: JSON) {
    self.root = root
  }

  /// The reason why strict mode rejects the schema; nil if it accepts it.
  var problem: String? {
    guard root["type"] == "object" else {
      return "schema must be a JSON Schema of 'type: \"object\"', got 'type: "
        + "\(root["type"]?.serialized ?? "None")'"
    }
    if let problem = problem(root, [], depth: 0) { return problem }
    for (name, definition) in root["$defs"]?.properties ?? [:] {
      if let problem = problem(definition, ["$defs", name], depth: 0) { return problem }
    }
    return nil
  }

  private func problem(_ schema: JSON, _ context: [String], depth: Int) -> String? {
    let place = "In context=(\(context.map { "'\($0)'" }.joined(separator: ", ")))"
    guard depth <= Self.depthMax else { return "\(place), schema is nested too deeply" }
    guard let keywords = schema.properties else { return "\(place), schema must be an object" }
    if let keyword = Self.refused.first(where: { keywords[$0] != nil }) {
      return "\(place), '\(keyword)' is not permitted"
    }
    if let choices = schema["anyOf"]?.items {
      for (index, choice) in choices.enumerated() {
        let found = problem(choice, context + ["anyOf", "\(index)"], depth: depth + 1)
        if let found { return found }
      }
      return nil
    }
    if let reference = schema["$ref"] {
      return resolve(reference) == nil ? "\(place), reference can not be resolved" : nil
    }
    guard let type = schema["type"] else {
      let isChoice = schema["enum"] != nil || schema["const"] != nil
      return isChoice ? nil : "\(place), schema must have a 'type' key"
    }
    if type == "array" || type.items?.contains("array") == true {
      guard let items = schema["items"] else { return "\(place), array schema missing items" }
      return problem(items, context + ["items"], depth: depth + 1)
    }
    guard type == "object" || type.items?.contains("object") == true else { return nil }
    guard schema["additionalProperties"] == false else {
      return "\(place), 'additionalProperties' is required to be supplied and to be false"
    }
    let properties = schema["properties"]?.properties ?? [:]
    let required = Set((schema["required"]?.items ?? []).compactMap(\.text))
    if required != Set(properties.keys) {
      let culprit = required.symmetricDifference(properties.keys).sorted()[0]
      return "\(place), 'required' is required to be supplied and to be an array including every "
        + "key in properties. \(required.contains(culprit) ? "Extra" : "Missing") '\(culprit)'"
    }
    for name in properties.keys.sorted() {
      let found = problem(
        properties[name] ?? .null,
        context + ["properties", name],
        depth: depth + 1
      )
      if let found { return found }
    }
    return nil
  }

  /// Describes the first difference between a value and the schema; nil if the value matches.
  func mismatch(_ value: JSON) -> String? { mismatch(value, root, at: "$", depth: 0) }

  private func mismatch(_ value: JSON, _ schema: JSON, at path: String, depth: Int) -> String? {
    guard depth <= 4 * Self.depthMax else { return "\(path) is nested too deeply" }
    if let reference = schema["$ref"] {
      guard let target = resolve(reference) else { return "\(path) has an unknown reference" }
      return mismatch(value, target, at: path, depth: depth + 1)
    }
    if let choices = schema["anyOf"]?.items {
      let fits = choices.contains { mismatch(value, $0, at: path, depth: depth + 1) == nil }
      return fits ? nil : "\(path) is none of the forms it may have"
    }
    if let choices = schema["enum"]?.items, !choices.contains(value) {
      return "\(path) is none of the values it may have"
    }
    if let only = schema["const"], only != value { return "\(path) is not \(only.serialized)" }
    if let type = schema["type"] {
      let types = type.items ?? [type]
      guard types.contains(where: { value.isOf($0.text ?? "") }) else {
        return "\(path) is not of type \(type.serialized)"
      }
    }
    switch value {
    case .array(let items):
      for (index, item) in items.enumerated() {
        let form = schema["items"] ?? [:]
        let found = mismatch(item, form, at: "\(path)[\(index)]", depth: depth + 1)
        if let found { return found }
      }
    case .object(let properties):
      let forms = schema["properties"]?.properties ?? [:]
      for name in schema["required"]?.items?.compactMap(\.text) ?? []
      where properties[name] == nil {
        return "\(path).\(name) is missing"
      }
      for (name, property) in properties.sorted(by: { $0.key < $1.key }) {
        guard let form = forms[name] else {
          if schema["additionalProperties"] == false { return "\(path).\(name) is not allowed" }
          continue
        }
        let found = mismatch(property, form, at: "\(path).\(name)", depth: depth + 1)
        if let found { return found }
      }
    default: break
    }
    return nil
  }

  private func resolve(_ reference: JSON) -> JSON? {
    guard let text = reference.text else { return nil }
    if text == "#" { return root }
    guard text.hasPrefix("#/$defs/") else { return nil }
    return root["$defs"]?[String(text.dropFirst("#/$defs/".count))]
  }
}

extension JSON {
  fileprivate func isOf(_ type: String) -> Bool {
    switch self {
    case .null: type == "null"
    case .boolean: type == "boolean"
    case .number(let number):
      type == "number" || (type == "integer" && number == number.rounded())
    case .string: type == "string"
    case .array: type == "array"
    case .object: type == "object"
    }
  }
}
