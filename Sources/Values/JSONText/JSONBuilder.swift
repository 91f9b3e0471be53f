/// Makes a room's own values from what a `JSONParser` reads.
///
/// Each method is called once for each value, inner values first.
@usableFromInline
package protocol JSONBuilder {
  /// A room's form of a JSON value.
  associatedtype Value

  /// Whether lists of numbers alone go to `numbers`, which is much faster to read.
  static var keepsNumberLists: Bool { get }

  /// The value of `null`.
  mutating func null() -> Value
  /// The value of `true` or `false`.
  mutating func boolean(_ flag: Bool) -> Value
  /// The value of a number; nil refuses a number beyond the range of a double.
  mutating func number(_ number: JSONNumber) -> Value?
  /// The value of a string.
  mutating func string(_ text: String) -> Value
  /// The value of a list.
  mutating func array(_ elements: [Value]) -> Value
  /// The value of a non-empty list of numbers alone; numbers beyond a double's range are infinite.
  mutating func numbers(_ numbers: [Double]) -> Value
  /// The value of an object from its members as they are written.
  ///
  /// Of equal names the last one counts, as in JavaScript.
  mutating func object(_ members: [(String, Value)]) -> Value
}

extension JSONBuilder {
  /// False: each number becomes a value of its own.
  @inlinable package static var keepsNumberLists: Bool { false }

  /// The list of the numbers' own values; called only with `keepsNumberLists`.
  @inlinable package mutating func numbers(_ numbers: [Double]) -> Value {
    array(numbers.compactMap { number(.double($0)) })
  }
}
