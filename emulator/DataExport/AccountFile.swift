import AuthAccounts
import Foundation
import JSONText
import StatusCodes
import StorageEngine

/// The users of an export in Firebase's form: `accounts.json` and `config.json` in one folder.
struct AccountFile: Sendable {
  static let folder = "auth_export"
  private static let accountsName = "accounts.json"
  private static let configName = "config.json"
  /// The names of the files in the folder.
  static let names = [accountsName, configName]

  var users: [UserAccount]
  /// The settings of sign-in; nil if the export has none.
  var settings: ProjectSettings?

  /// Reads and checks the files of a folder.
  ///
  /// Throws `INVALID_ARGUMENT` with the file and the user for a user who is malformed or who has
  /// the id, the address, the number or the provider's account of another one.
  init(folder: String) throws {
    let path = "\(folder)/\(Self.accountsName)"
    let text = try Self.contents(path)
    // The error below names the file and the usual cause.
    guard let members = try? jsonMembers(of: text) else {
      throw StatusError.invalidArgument("\(path) is not a JSON object; it may have been cut.")
    }
    let elements = try members["users"].map { try jsonElements(of: $0) } ?? []
    guard let elements else {
      throw StatusError.invalidArgument("\(path): \"users\" is not a list.")
    }
    users = []
    var owners: [AccountIdentity: Int] = [:]
    var ids: Set<String> = []
    for (index, element) in elements.enumerated() {
      func invalid(_ problem: String) -> StatusError {
        .invalidArgument("\(path): users[\(index)] \(problem).")
      }
      var user: UserAccount
      do {
        user = try UserAccount(decodingJSON: element)
      } catch {
        throw invalid("is not a user: \(StatusError.message(of: error))")
      }
      do {
        user = try AccountChecks.checked(user)
      } catch {
        throw invalid("is not valid: \(error.statusMessage)")
      }
      guard ids.insert(user.localId).inserted else { throw invalid("has the localId of another") }
      for identity in user.identities {
        if let other = owners.updateValue(index, forKey: identity) {
          throw invalid("has the \(identity.name) of users[\(other)]")
        }
      }
      users.append(user)
    }
    let config = "\(folder)/\(Self.configName)"
    guard FileManager.default.fileExists(atPath: config) else { return }
    do {
      settings = try ProjectSettings(decodingJSON: Self.contents(config))
    } catch let error as DecodingError {
      throw StatusError.invalidArgument("\(config) has no settings of sign-in: \(error)")
    }
  }

  private static func contents(_ path: String) throws(StatusError) -> [UInt8] {
    try RegularFile.contents(of: path, bytesMax: bytesMax)
  }

  /// Writes users and settings to a folder and returns the number of users.
  static func write(_ accounts: AccountSnapshot, to folder: String) throws -> Int {
    let file = try ExportFileWriter(path: "\(folder)/\(accountsName)")
    try file.append(line: #"{"kind":"identitytoolkit#DownloadAccountResponse","users":["#.utf8)
    var count = 0
    try accounts.forEachUser { user in
      if count.isMultiple(of: pageMax) { try Task.checkCancellation() }
      let separator = count == 0 ? "" : ","
      try file.append(line: Array(separator.utf8) + user.jsonBytes())
      count += 1
    }
    try file.append(line: "]}".utf8)
    _ = try file.finish()
    let config = try ExportFileWriter(path: "\(folder)/\(configName)")
    try config.append(line: try accounts.settings.jsonBytes(isPretty: true))
    _ = try config.finish()
    return count
  }

  /// Throws `FAILED_PRECONDITION` if a stored user who stays has what identifies an imported one.
  func check(against accounts: AccountStore) async throws {
    guard !users.isEmpty else { return }
    let imported = Set(users.map(\.localId))
    let taken: String? = try await accounts.read { view in
      for user in users {
        for identity in user.identities {
          guard let owner = try view.user(with: identity), !imported.contains(owner.localId) else {
            continue
          }
          return "The \(identity.name) of \(user.localId) belongs to the user \(owner.localId)"
        }
      }
      return nil
    }
    if let taken {
      throw StatusError(
        .failedPrecondition,
        "\(taken), who is not in the export; delete that user, or import with --replace."
      )
    }
  }

  /// Stores the users, some in each commit, and the settings; causes no events.
  func load(into accounts: AccountStore) async throws {
    // First all users who are replaced, so that users can exchange what identifies them.
    for start in stride(from: 0, to: users.count, by: Self.pageMax) {
      let page = users[start..<min(start + Self.pageMax, users.count)]
      try await accounts.change(durability: .relaxed) { change in
        for user in page { try change.delete(user) }
      }
    }
    for start in stride(from: 0, to: users.count, by: Self.pageMax) {
      try Task.checkCancellation()
      let page = users[start..<min(start + Self.pageMax, users.count)]
      try await accounts.change(durability: .relaxed) { change in
        for user in page { try change.put(user) }
      }
    }
    if let settings { try await accounts.change { $0.set(settings) } }
  }

  private static let pageMax = 500
  private static let bytesMax = 1 << 30
}

extension AccountIdentity {
  /// A name for error messages.
  fileprivate var name: String {
    switch self {
    case .email(let email): "address \(email)"
    case .phoneNumber(let number): "telephone number \(number)"
    case .provider(let id, _): "account at \(id)"
    }
  }
}
