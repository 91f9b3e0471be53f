import EmulatorSuite
import Foundation

/// The `emulators` of a `firebase.json`, in the form that Firebase's tools read.
struct EmulatorSettings: Decodable {
  /// The services with an address of their own, or a part of one.
  var services: [SuiteService: Service] = [:]
  /// The names of emulators that the suite does not have, in alphabetical order.
  var missing: [String] = []
  /// False if clients of other projects are expected, so that they cause no warning.
  var isSingleProject = true

  /// The settings of one service.
  struct Service: Decodable {
    var host: String?
    var port: Int?
    /// False if the service is switched off; only the console (`ui`) can be.
    var enabled: Bool?
  }

  /// Creates the settings of a project that has none.
  init() {}

  init(from decoder: any Decoder) throws {
    let container = try decoder.container(keyedBy: Name.self)
    for name in container.allKeys {
      if name.stringValue == "singleProjectMode" {
        // Firebase's older files say "error" or "warn", too.
        isSingleProject = (try? container.decode(Bool.self, forKey: name)) ?? true
      } else if let service = SuiteService(rawValue: name.stringValue) {
        services[service] = try container.decodeIfPresent(Service.self, forKey: name)
      } else {
        missing.append(name.stringValue)
      }
    }
    missing.sort()
  }

  /// The hosts that the file sets, by service.
  var hosts: [SuiteService: String] { services.compactMapValues(\.host) }

  /// The ports that the file sets, by service.
  var ports: [SuiteService: Int] { services.compactMapValues(\.port) }

  /// False if the file switches the console off.
  var hasConsole: Bool { services[.ui]?.enabled ?? true }

  /// Throws if a port or a host cannot be one; `file` is the file's path for the message.
  func check(file: String) throws {
    for (service, port) in ports where !(0...65_535).contains(port) {
      throw CommandError(
        "\(file): emulators.\(service.rawValue).port is \(port); set 0 to 65535."
      )
    }
    for (service, host) in hosts where !Self.isHost(host) {
      throw CommandError(
        "\(file): emulators.\(service.rawValue).host is \"\(host)\"; set an address without a "
          + "port, such as 127.0.0.1 or 0.0.0.0."
      )
    }
  }

  /// Returns true for what can be a name, an IPv4 address or, because of its colons, an IPv6 one.
  private static func isHost(_ host: String) -> Bool {
    let colons = host.count { $0 == ":" }
    let allowed = CharacterSet(charactersIn: colons > 0 ? "0123456789abcdefABCDEF.:" : "-._")
      .union(colons > 0 ? [] : .alphanumerics)
    return !host.isEmpty && colons != 1 && host.unicodeScalars.allSatisfy(allowed.contains)
  }

  /// The sentence that names the emulators that are missing; nil if there are none.
  func missingNote(file: String) -> String? {
    guard !missing.isEmpty else { return nil }
    return "\(file) configures emulators that Hearth does not have: "
      + "\(missing.joined(separator: ", ")). They are not started."
  }

  private struct Name: CodingKey {
    var stringValue: String
    var intValue: Int? { nil }

    init?(stringValue: String) { self.stringValue = stringValue }

    init?(intValue: Int) { nil }
  }
}
