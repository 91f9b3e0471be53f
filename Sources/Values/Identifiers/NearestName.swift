/// The search for the known name that a misspelled name was probably meant to be.
package enum NearestName {
  /// Returns the known name that differs least from `name`; nil if all of them differ too much.
  ///
  /// Capitals do not count. A name may differ by one insertion, deletion, replacement or swap of
  /// neighbors for every three characters, by one in any case, and by three at most. The beginning
  /// of a single known name stands for that name if `takesBeginning` is true.
  package static func of(
    _ name: String,
    among known: some Sequence<String>,
    takesBeginning: Bool = true
  ) -> String? {
    let wanted = Array(name.lowercased().prefix(lengthMax))
    guard !wanted.isEmpty else { return nil }
    let limit = min(differencesMax, max(1, wanted.count / 3))
    var best: (name: String, distance: Int)?
    var begun: [String] = []
    for candidate in known.prefix(candidatesMax) where candidate != name {
      let characters = Array(candidate.lowercased().prefix(lengthMax))
      if characters.starts(with: wanted) { begun.append(candidate) }
      guard abs(characters.count - wanted.count) <= limit else { continue }
      let distance = distance(wanted, characters)
      guard distance <= limit else { continue }
      // Of names that differ alike, one that begins with the text is more likely.
      let isLikelier = distance == best?.distance && begun.last == candidate
      if distance < best?.distance ?? .max || isLikelier { best = (candidate, distance) }
    }
    if let best { return best.name }
    let isBeginning = takesBeginning && begun.count == 1 && wanted.count >= beginningMin
    return isBeginning ? begun[0] : nil
  }

  /// Returns the question ` Did you mean NAME?`, with a space before it; empty without such a name.
  package static func question(_ name: String, among known: some Sequence<String>) -> String {
    of(name, among: known).map { " Did you mean \($0)?" } ?? ""
  }

  /// Returns the optimal string alignment distance of two texts.
  private static func distance(_ first: [Character], _ second: [Character]) -> Int {
    var before: [Int] = []
    var previous = Array(0...second.count)
    for (row, left) in first.enumerated() {
      var current = [row + 1]
      for (column, right) in second.enumerated() {
        var least = min(
          previous[column] + (left == right ? 0 : 1),
          previous[column + 1] + 1,
          current[column] + 1
        )
        if row > 0, column > 0, left == second[column - 1], first[row - 1] == right {
          least = min(least, before[column - 1] + 1)
        }
        current.append(least)
      }
      before = previous
      previous = current
    }
    return previous[second.count]
  }

  /// The maximum number of differences of a misspelled name.
  private static let differencesMax = 3
  /// The maximum number of known names that are compared; there may be thousands.
  private static let candidatesMax = 1000
  /// The number of characters that are compared; the work grows with its square.
  private static let lengthMax = 100
  /// The minimum length of a beginning that stands for a whole name.
  private static let beginningMin = 3
}
