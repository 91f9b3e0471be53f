import HTTPSupport

/// The name of the instance that a request means.
enum InstanceName {
  /// The name that stands for a missing one, as in Firebase's emulator.
  static let missing = "fake-server"
  /// The domains below which an instance has a host of its own.
  private static let domains = [".localhost", ".firebaseio.com", ".firebasedatabase.app"]

  /// Returns the name in the parameter `ns` or in the host.
  static func of(_ parameters: QueryParameters, authority: String?) -> String {
    parameters["ns"] ?? label(of: authority ?? "") ?? missing
  }

  private static func label(of authority: String) -> String? {
    let host = authority.prefix { $0 != ":" }.lowercased()
    guard domains.contains(where: { host.hasSuffix($0) }) else { return nil }
    return host.split(separator: ".").first.map(String.init)
  }
}
