/// A number as written: integers keep every digit, as far as 64 bits hold them.
@usableFromInline
package enum JSONNumber: Sendable, Equatable {
  case integer(Int64)
  /// An integer that is too large for `Int64`.
  case unsigned(UInt64)
  /// A number with a fraction or an exponent, a longer integer, or -0.
  ///
  /// It is infinite when the number is beyond the range of a double.
  case double(Double)

  /// The nearest double.
  @inlinable package var double: Double {
    switch self {
    case .integer(let integer): Double(integer)
    case .unsigned(let integer): Double(integer)
    case .double(let double): double
    }
  }
}
