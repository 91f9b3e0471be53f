import LinearRegex

extension LinearPattern {
  func matchesWhole(_ text: String) throws -> Bool {
    var work = Int.max
    return try matchesWhole(text, work: &work)
  }

  /// Replaces all matches without limits; nil if the template is invalid.
  func replacingAll(in text: String, with template: String) throws -> String? {
    var work = Int.max
    do throws(SearchError) {
      return try replacingAll(in: text, with: template, bytesMax: .max, work: &work)
    } catch {
      guard case .invalidTemplate = error else { throw error }
      return nil
    }
  }

  func split(_ text: String) throws -> [String] {
    var work = Int.max
    return try split(text, work: &work)
  }
}
