/// A builder that creates a module's own values from the JSON that a `JSONParser` reads.
///
/// Each method is called once for each value, inner values first.
@usableFromInline
package protocol JSONBuilder {
  /// The module's representation of a JSON value.
  associatedtype Value

  /// True if lists that contain only numbers go to `numbers`, which is much faster to parse.
  static var keepsNumberLists: Bool { get }

  /// Returns the value for `null`.
  mutating func null() -> Value
  /// Returns the value for `true` or `false`.
  mutating func boolean(_ flag: Bool) -> Value
  /// Returns the value for a number; nil refuses a number beyond the range of a double.
  mutating func number(_ number: JSONNumber) -> Value?
  /// Returns the value for a string.
  mutating func string(_ text: String) -> Value
  /// Returns the value for a list.
  mutating func array(_ elements: [Value]) -> Value
  /// Returns the value for a non-empty list that contains only numbers.
  ///
  /// Numbers beyond a double's range are infinite.
  mutating func numbers(_ numbers: [Double]) -> Value
  /// Returns the value for an object from its members in their original order.
  ///
  /// Of members with the same name, the last one counts, as in JavaScript.
  mutating func object(_ members: [(String, Value)]) -> Value
}

extension JSONBuilder {
  /// False: each number becomes a separate value.
  @inlinable package static var keepsNumberLists: Bool { false }

  /// Returns the list of the numbers' own values; called only with `keepsNumberLists`.
  @inlinable package mutating func numbers(_ numbers: [Double]) -> Value {
    array(numbers.compactMap { number(.double($0)) })
  }
}
