/// The search for the intended word of a misspelling.
enum Spelling {
  /// The maximum number of candidates to compare; a file may declare thousands of functions.
  private static let candidatesMax = 200
  /// The maximum length of words to compare, because the cost grows with the square of the length.
  private static let lengthMax = 40

  /// Returns the candidate with the fewest differences; nil if none is similar enough.
  static func nearest(to word: String, in candidates: [String]) -> String? {
    guard word.unicodeScalars.count <= lengthMax else { return nil }
    // One difference per three letters, and at most three in all, still counts as a misspelling.
    let differencesMax = min(3, max(1, word.unicodeScalars.count / 3))
    var best: (candidate: String, differences: Int)?
    for candidate in candidates.prefix(candidatesMax) where candidate != word {
      let differences = differences(word, candidate, max: differencesMax)
      guard differences <= differencesMax, differences < best?.differences ?? .max else { continue }
      best = (candidate, differences)
    }
    return best?.candidate
  }

  /// Returns the edit distance of two words.
  ///
  /// Insertions, deletions, replacements and transpositions of neighboring letters count as one
  /// difference each. If the lengths differ by more than `max`, the result is `Int.max`.
  private static func differences(_ left: String, _ right: String, max: Int) -> Int {
    // The comparison ignores case.
    let left = Array(left.lowercased().unicodeScalars)
    let right = Array(right.lowercased().unicodeScalars)
    guard abs(left.count - right.count) <= max else { return .max }
    var rows = [Array(0...right.count)]
    for i in 1...Swift.max(left.count, 1) where i <= left.count {
      var row = [i]
      for j in 1...Swift.max(right.count, 1) where j <= right.count {
        let isSame = left[i - 1] == right[j - 1]
        var least = min(rows[i - 1][j] + 1, row[j - 1] + 1, rows[i - 1][j - 1] + (isSame ? 0 : 1))
        if i > 1, j > 1, left[i - 1] == right[j - 2], left[i - 2] == right[j - 1] {
          least = min(least, rows[i - 2][j - 2] + 1)
        }
        row.append(least)
      }
      rows.append(row)
    }
    return rows.last?.last ?? .max
  }
}
