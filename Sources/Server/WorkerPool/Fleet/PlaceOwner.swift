/// The identity under which a version of a function holds worker places.
struct PlaceOwner: Hashable, Comparable, Sendable {
  var function: String
  /// A number that distinguishes versions of one function; later versions have higher numbers.
  var number: Int

  static func < (left: Self, right: Self) -> Bool {
    (left.function, left.number) < (right.function, right.number)
  }
}
