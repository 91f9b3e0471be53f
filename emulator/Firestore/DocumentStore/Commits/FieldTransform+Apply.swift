import DocumentModel

extension FieldTransform {
  /// Applies the transform and returns its result: the new value, or null for array transforms.
  ///
  /// A server timestamp becomes `requestTime`. Operands must have been validated.
  func apply(to fields: inout MapValue, requestTime: Timestamp) -> FirestoreValue {
    let stored = fields[path]
    switch kind {
    case .requestTime: return replace(.timestamp(requestTime), in: &fields)
    case .increment(let operand): return replace(Self.sum(stored, operand), in: &fields)
    case .maximum(let operand):
      return replace(Self.extreme(stored, operand, .greater), in: &fields)
    case .minimum(let operand):
      return replace(Self.extreme(stored, operand, .less), in: &fields)
    case .appendMissingElements(let elements):
      var array = Self.elements(of: stored)
      for element in elements where !array.contains(where: { ValueOrder.areEqual($0, element) }) {
        array.append(element)
      }
      fields.set(.array(array), at: path)
      return .null
    case .removeAllFromArray(let elements):
      let array = Self.elements(of: stored).filter { stored in
        !elements.contains { ValueOrder.areEqual($0, stored) }
      }
      fields.set(.array(array), at: path)
      return .null
    }
  }

  private func replace(_ value: FirestoreValue, in fields: inout MapValue)
    -> FirestoreValue
  {
    fields.set(value, at: path)
    return value
  }

  /// Returns the sum of the stored value and the operand.
  ///
  /// Integers saturate. If either side is a double, so is the sum. A stored value that is not a
  /// number is ignored.
  private static func sum(_ stored: FirestoreValue?, _ operand: FirestoreValue) -> FirestoreValue {
    switch (stored, operand) {
    case (.integer(let a), .integer(let b)):
      let (sum, overflow) = a.addingReportingOverflow(b)
      return .integer(overflow ? (b < 0 ? .min : .max) : sum)
    case (.integer(let a), .double(let b)): return .double((Double(a) + b).withOneNaN)
    case (.double(let a), .integer(let b)): return .double((a + Double(b)).withOneNaN)
    case (.double(let a), .double(let b)): return .double((a + b).withOneNaN)
    default: return operand
    }
  }

  /// Returns the operand if it compares to the stored number as `wanted`, else the stored number.
  ///
  /// NaN on either side wins.
  private static func extreme(
    _ stored: FirestoreValue?,
    _ operand: FirestoreValue,
    _ wanted: Ordering
  ) -> FirestoreValue {
    guard let stored, ValueOrder.typeClass(stored) == .number else { return operand }
    if isNaN(stored) || isNaN(operand) { return .double(.nan) }
    return ValueOrder.compare(operand, stored) == wanted ? operand : stored
  }

  private static func isNaN(_ value: FirestoreValue) -> Bool {
    if case .double(let number) = value { number.isNaN } else { false }
  }

  private static func elements(of stored: FirestoreValue?) -> [FirestoreValue] {
    if case .array(let elements) = stored { elements } else { [] }
  }
}
