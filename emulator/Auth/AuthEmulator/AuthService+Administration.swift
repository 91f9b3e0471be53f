import AuthAccounts
import DocumentModel
import HTTPMessages
import HTTPSupport
import JSONText

/// The methods of an administrator for many users at once, and for settings.
extension AuthService {
  func batchGet(_ call: AuthCall) async throws -> Response {
    let text = call.request.query["maxResults"].flatMap { Int($0) }
    let size = min(text.flatMap { $0 > 0 ? $0 : nil } ?? 20, Self.batchMax)
    let start = call.request.query["nextPageToken"].flatMap { $0.isEmpty ? nil : $0 }
    let users = try await store.read { view in
      var users: [UserAccount] = []
      try view.users(after: start) { user in
        users.append(user)
        return users.count <= size
      }
      return users
    }
    var response = JSONObjectText()
    response.set("kind", "identitytoolkit#DownloadAccountResponse")
    response.set("users", json: try Array(users.prefix(size)).jsonBytes())
    if users.count > size { response.set("nextPageToken", users[size - 1].localId) }
    return Self.json(response)
  }

  func query(_ call: AuthCall) async throws -> Response {
    let body = try call.body()
    if let conditions = body.expression, !conditions.isEmpty {
      throw AuthError.notEmulated("Queries with expressions are")
    }
    let sorts = [nil, "SORT_BY_FIELD_UNSPECIFIED", "USER_ID"]
    guard sorts.contains(body.sortBy) else {
      throw AuthError.notEmulated("Queries sorted by other fields than USER_ID are")
    }
    let isDescending = body.order == "DESC"
    let limit = min(max(body.limit?.number ?? Self.queryMax, 0), Self.queryMax)
    let offset = max(body.offset?.number ?? 0, 0)
    let returnsUsers = body.returnUserInfo ?? true
    let (count, users) = try await store.read { view in
      let count = try view.count()
      guard returnsUsers else { return (count, [UserAccount]()) }
      var users: [UserAccount] = []
      var skipped = 0
      try view.users(descending: isDescending) { user in
        if skipped < offset {
          skipped += 1
        } else if users.count < limit {
          users.append(user)
        }
        return users.count < limit
      }
      return (count, users)
    }
    var response = JSONObjectText()
    response.set("recordsCount", "\(count)")
    if returnsUsers { response.set("userInfo", json: try users.jsonBytes()) }
    return Self.json(response)
  }

  func batchDelete(_ call: AuthCall) async throws -> Response {
    let body = try call.body()
    let ids = body.localIds ?? []
    try require((1...Self.batchMax).contains(ids.count), "LOCAL_ID_LIST_EXCEEDS_LIMIT")
    let force = body.force ?? false
    let refused = try await store.change { change in
      var refused: [Int] = []
      for (index, id) in ids.enumerated() {
        guard let user = try change.user(id) else { continue }
        if force || user.isDisabled {
          // As in production, functions get no events of users that are deleted in a batch.
          try change.delete(user)
        } else {
          refused.append(index)
        }
      }
      return refused
    }
    var response = JSONObjectText()
    let errors = refused.map { index in
      var error = JSONObjectText()
      error.set("index", Int64(index))
      error.set("localId", ids[index])
      error.set("message", "NOT_DISABLED : Disable the account before batch deletion.")
      return error.bytes
    }
    if !errors.isEmpty { response.set("errors", json: JSONObjectText.array(errors)) }
    return Self.json(response)
  }

  func batchCreate(_ call: AuthCall) async throws -> Response {
    let body = try call.body()
    let uploaded = body.users ?? []
    try require(!uploaded.isEmpty, "MISSING_USER_ACCOUNT")
    try require(uploaded.count <= Self.batchMax, "MAXIMUM_USER_COUNT_EXCEEDED")
    let accounts = uploaded.map(\.account)
    if body.sanityCheck ?? false { try Self.refuseRepeated(accounts) }
    let overwrites = body.allowOverwrite ?? false
    if !overwrites, let id = Self.firstRepeated(accounts.map(\.localId)) {
      throw AuthError("DUPLICATE_LOCAL_ID : \(id)")
    }
    var prepared: [Result<UserAccount, AuthError>] = []
    for entry in uploaded {
      do {
        prepared.append(.success(try await self.account(entry)))
      } catch let error as AuthError {
        prepared.append(.failure(error))
      }
    }
    let list = prepared
    let errors = try await store.change { change in
      var errors: [[UInt8]] = []
      for (index, entry) in list.enumerated() {
        do {
          try Self.store(try entry.get(), overwrites: overwrites, &change)
        } catch let error as AuthError {
          var item = JSONObjectText()
          item.set("index", Int64(index))
          item.set("message", error.statusMessage)
          errors.append(item.bytes)
        }
      }
      return errors
    }
    var response = JSONObjectText()
    response.set("kind", "identitytoolkit#UploadAccountResponse")
    response.set("error", json: JSONObjectText.array(errors))
    return Self.json(response)
  }

  /// Returns the account that an entry of a batch describes.
  private func account(_ entry: UploadedAccount) async throws -> UserAccount {
    try require(!entry.account.localId.isEmpty, "localId is missing")
    if let tenant = entry.account.tenantId, !tenant.isEmpty {
      throw AuthError.notEmulated("Tenants are")
    }
    var account = try AccountChecks.checked(entry.account)
    if account.passwordHash != nil {
      account.passwordUpdatedAt = Double(store.time.microseconds / 1000)
    } else if let password = entry.rawPassword {
      let hashed = try await hasher.hash(password, salt: account.salt)
      account.passwordHash = hashed.hash
      account.salt = hashed.salt
      account.passwordUpdatedAt = Double(store.time.microseconds / 1000)
    } else {
      account.salt = nil
    }
    account.emailVerified = account.emailVerified ?? false
    account.disabled = account.disabled ?? false
    account.validSince = "\(store.time.seconds)"
    account.createdAt = account.createdAt ?? milliseconds
    return account
  }

  private static func store(
    _ account: UserAccount,
    overwrites: Bool,
    _ change: inout AccountChange
  ) throws {
    for identity in account.identities {
      guard let owner = try change.user(with: identity), owner.localId != account.localId else {
        continue
      }
      switch identity {
      case .email(let email):
        throw AuthError(
          "((Auth Emulator does not support importing duplicate email: \(email)))"
        )
      case .phoneNumber: throw AuthError("phone number exists in other account in database")
      case .provider: throw AuthError("raw id exists in other account in database")
      }
    }
    let isKnown = try change.user(account.localId) != nil
    try require(
      !isKnown || overwrites,
      "localId belongs to an existing account - can not overwrite."
    )
    try change.put(account)
  }

  private static func refuseRepeated(_ accounts: [UserAccount]) throws(AuthError) {
    if let email = firstRepeated(accounts.compactMap { $0.email?.lowercased() }) {
      throw AuthError("DUPLICATE_EMAIL : \(email)")
    }
    var known: Set<[String]> = []
    for provider in accounts.flatMap({ $0.providerUserInfo ?? [] }) {
      guard let rawID = provider.rawId else { continue }
      try require(
        known.insert([provider.providerId, rawID]).inserted,
        "DUPLICATE_RAW_ID : Provider id(\(provider.providerId)), Raw id(\(rawID))"
      )
    }
  }

  private static func firstRepeated(_ texts: [String]) -> String? {
    var known: Set<String> = []
    return texts.first { !$0.isEmpty && !known.insert($0).inserted }
  }

  func createSessionCookie(_ call: AuthCall) async throws -> Response {
    let body = try call.body()
    let seconds = body.validDuration?.number ?? Self.cookieSeconds.upperBound
    try require(Self.cookieSeconds.contains(seconds), "INVALID_DURATION")
    let verified = try await verify(body.idToken)
    var response = JSONObjectText()
    response.set(
      "sessionCookie",
      tokens.sessionCookie(verified.payload, validSeconds: Int64(seconds))
    )
    return Self.json(response)
  }

  // MARK: - Settings

  func settings() async throws -> Response {
    let settings = try await store.read { try $0.settings() }
    return try .json(encoding: settings)
  }

  func updateSettings(_ call: AuthCall) async throws -> Response {
    let update: ProjectSettings.Update = try call.decoded()
    let settings = try await store.change { change in
      var settings = try change.settings
      settings.merge(update)
      change.set(settings)
      return settings
    }
    return try .json(encoding: settings)
  }

  /// The most users of one request.
  static let batchMax = 1000
  private static let queryMax = 500
  /// The lifetime of a session cookie: five minutes to two weeks.
  private static let cookieSeconds = 300...1_209_600
}
