/// A number as written; integers keep every digit that fits in 64 bits.
@usableFromInline
package enum JSONNumber: Sendable, Equatable {
  case integer(Int64)
  /// An integer that is too large for `Int64`.
  case unsigned(UInt64)
  /// A number with a fraction or an exponent, an integer beyond 64 bits, or -0.
  ///
  /// It is infinite if the number is beyond the range of a double.
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
