/// The names of Cloud Run services.
enum ServiceName {
  /// The most characters of a service's name.
  private static let charactersMax = 49

  /// Returns the service's name for a function's: in lower case, with hyphens for underscores.
  ///
  /// The tools of Firebase name services in the same way.
  static func make(from function: String) throws(PlanError) -> String {
    let name = String(function.lowercased().map { $0 == "_" ? "-" : $0 })
    guard name.utf8.count <= charactersMax else {
      throw PlanError(
        "\(function) has \(name.utf8.count) characters, and the name of a Cloud Run service at most "
          + "\(charactersMax); shorten it."
      )
    }
    guard name.utf8.last != UInt8(ascii: "-") else {
      throw PlanError(
        "\(function) ends with \(function.suffix(1)), which the name of a Cloud Run service must not; "
          + "rename it."
      )
    }
    return name
  }
}
