/// A version of a function, as one that holds worker places.
struct PlaceOwner: Hashable, Comparable, Sendable {
  var function: String
  /// Tells versions of one function apart; later ones have higher numbers.
  var number: Int

  static func < (left: Self, right: Self) -> Bool {
    (left.function, left.number) < (right.function, right.number)
  }
}
