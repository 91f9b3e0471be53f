public import FirestoreClient
public import Foundation
public import OutboundHTTP
public import PsstModels
import Synchronization

/// The sign-up and the sign-in of the app's user.
///
/// A sign-up makes the account and the user document. If the connection or the app ends between the
/// two, a repeated sign-up with the same password completes it. Otherwise the backend removes the
/// account after an hour.
public final class AuthenticationService: Sendable {
  /// A signed-in user.
  public struct Session: Codable, Sendable, Hashable {
    /// The user's id.
    public var uid: String
    /// The address in lower case.
    public var email: String
    /// The token that the services send; `AuthenticationService.idToken()` returns a fresh one.
    public var idToken: String
    /// The token that gets new ID tokens, to be kept in the keychain.
    public var refreshToken: String
    /// The time at which `idToken` expires.
    public var expiry: Date

    /// Creates a session from its parts, for example in a preview.
    public init(uid: String, email: String, idToken: String, refreshToken: String, expiry: Date) {
      self.uid = uid
      self.email = email
      self.idToken = idToken
      self.refreshToken = refreshToken
      self.expiry = expiry
    }
  }

  /// The session and the sequences that follow it.
  private struct State {
    var session: Session?
    var observers: [AsyncStream<Session?>.Continuation] = []
  }

  private let server: AuthenticationServer
  private let firestore: Firestore
  private let pause: @Sendable (Duration) async throws -> Void
  private let now: @Sendable () -> Date
  private let state = Mutex(State())

  /// Creates a service; `session` is that of an earlier run, if the app has kept it.
  public init(
    settings: AuthenticationSettings,
    firestore: Firestore,
    http: any HTTPTransport,
    session: Session? = nil,
    pause: @escaping @Sendable (Duration) async throws -> Void = { try await Task.sleep(for: $0) },
    now: @escaping @Sendable () -> Date = { Date() }
  ) {
    server = AuthenticationServer(settings: settings, http: http)
    self.firestore = firestore
    self.pause = pause
    self.now = now
    state.withLock { $0.session = session }
  }

  /// The signed-in user; nil if nobody is signed in.
  public var currentUser: Session? { state.withLock { $0.session } }

  /// The current session, then a new one after each change; nil while nobody is signed in.
  ///
  /// Store each session in the keychain, because its tokens change, and show the sign-in screen
  /// when it is nil. The sequence ends when its task is cancelled.
  public func observeSession() -> AsyncStream<Session?> {
    let (stream, continuation) = AsyncStream<Session?>.makeStream(
      bufferingPolicy: .bufferingNewest(1)
    )
    state.withLock { state in
      state.observers.append(continuation)
      continuation.yield(state.session)
    }
    return stream
  }

  /// Changes the session if it satisfies a condition, and tells the observers.
  private func change(_ new: Session?, if holds: (Session?) -> Bool = { _ in true }) {
    state.withLock { state in
      guard holds(state.session), state.session != new else { return }
      state.session = new
      state.observers.removeAll { observer in
        if case .terminated = observer.yield(new) { true } else { false }
      }
    }
  }

  /// Makes an account and its user document, and signs the user in.
  ///
  /// Throws `AuthenticationError`; `SignUpForm` has the same checks for a form. After
  /// `networkError` the account may exist without the document; repeat the call with the same
  /// password to complete it.
  @discardableResult
  public func signUp(
    email: String,
    password: String,
    displayName: String,
    role: UserRole?
  ) async throws -> User {
    let form = SignUpForm(email: email, password: password, displayName: displayName, role: role)
    let (name, role, address) = try form.values()
    let (new, isNew) = try await account(email: address, password: password, name: name)
    let creation: Creation
    do {
      creation = try await createDocument(of: new, name: name, role: role)
      // Whoever knows the password of a complete account has signed up before.
      guard creation.isOwn || isNew else { throw AuthenticationError.emailAlreadyInUse }
    } catch let error as FirestoreError where !Self.isTemporary(error) {
      if isNew {
        // The error of the sign-up matters; an account left over can sign up again.
        let _: AuthenticationServer.Nothing? = try? await server.send(
          "delete",
          ["idToken": new.idToken]
        )
      }
      throw AuthenticationError.refused("The account cannot be made: \(error.message)")
    } catch is FirestoreError {
      throw AuthenticationError.networkError
    }
    _ = keep(new)
    return User(
      id: new.uid,
      displayName: name,
      email: new.email,
      role: role,
      createdAt: creation.time
    )
  }

  /// The creation of a user document.
  private struct Creation {
    /// True if this sign-up has created the document.
    var isOwn: Bool
    /// The time of the creation; nil if its confirmation was lost.
    var time: Timestamp?
  }

  /// Returns a name without surrounding white space, if others can see it and the rules accept it.
  ///
  /// The app and the backend check names with it. Throws `AuthenticationError.emptyDisplayName` or
  /// `displayNameTooLong`.
  public static func checkedName(_ typed: String) throws -> String {
    if let name = DisplayName(typed) { return name.text }
    guard DisplayName.isVisible(typed) else {
      throw AuthenticationError.emptyDisplayName(isBlank: !typed.isEmpty)
    }
    throw AuthenticationError.displayNameTooLong
  }

  /// Returns a new account, or the existing one if the password fits, which may lack its document.
  private func account(
    email: String,
    password: String,
    name: String
  ) async throws -> (Session, isNew: Bool) {
    do {
      let fields = ["email": email, "password": password, "displayName": name]
      return (session(of: try await server.send("signUp", fields)), true)
    } catch AuthenticationError.emailAlreadyInUse {
      do {
        return (try await signedIn(email: email, password: password), false)
      } catch AuthenticationError.wrongCredentials {
        throw AuthenticationError.emailAlreadyInUse
      }
    }
  }

  /// Creates the user document as the user, unless there is one.
  private func createDocument(
    of session: Session,
    name: String,
    role: UserRole
  ) async throws -> Creation {
    let document = firestore.acting(as: .idToken(session.idToken))
      .document("\(User.collection)/\(session.uid)")
    for attempt in 1... {
      do {
        let result = try await document.create(
          User.newFields(id: session.uid, email: session.email, name: name, role: role)
        )
        return Creation(isOwn: true, time: result.serverTime)
      } catch let error as FirestoreError {
        // A write whose confirmation was lost has happened, and is found by the next attempt.
        if error.code == .alreadyExists { return Creation(isOwn: attempt > 1) }
        guard Self.isTemporary(error), attempt < Self.attemptsMax else { throw error }
        try await pause(Self.backOff.delay(afterFailures: attempt))
      }
    }
    return Creation(isOwn: false)
  }

  /// Signs in with an address and a password; throws `AuthenticationError`.
  @discardableResult
  public func signIn(email: String, password: String) async throws -> Session {
    keep(try await signedIn(email: email, password: password))
  }

  private func signedIn(email: String, password: String) async throws -> Session {
    session(
      of: try await server.send(
        "signInWithPassword",
        ["email": EmailAddress(email)?.typed ?? email, "password": password]
      )
    )
  }

  /// Forgets the session on this device.
  public func signOut() { change(nil) }

  /// Sends an e-mail with a link to choose another password.
  ///
  /// An address without an account is not an error, so that nobody learns who has one.
  public func resetPassword(email: String) async throws {
    do {
      let _: AuthenticationServer.Nothing = try await server.send(
        "sendOobCode",
        ["requestType": "PASSWORD_RESET", "email": EmailAddress(email)?.typed ?? email]
      )
    } catch AuthenticationError.wrongCredentials {
      return
    }
  }

  /// Returns an ID token that is valid for some minutes at least, refreshed if necessary.
  ///
  /// Throws `notAuthenticated` if nobody is signed in or the session was ended elsewhere; the user
  /// is then signed out here, too.
  public func idToken() async throws -> String {
    guard let current = currentUser else { throw AuthenticationError.notAuthenticated }
    guard current.expiry.timeIntervalSince(now()) < Self.marginSeconds else {
      return current.idToken
    }
    return try await renewedToken(of: current)
  }

  /// Returns the source of the signed-in user's tokens, with which clients act as that user.
  ///
  /// It stays bound to this user: after another one has signed in, it throws `notAuthenticated`.
  /// Throws `notAuthenticated` if nobody is signed in.
  public func tokens() throws -> any IDTokenSource {
    guard let uid = currentUser?.uid else { throw AuthenticationError.notAuthenticated }
    return SessionTokens(uid: uid, authentication: self)
  }

  /// Returns another token than the one that a server has refused.
  fileprivate func idToken(of uid: String, replacing rejected: String?) async throws -> String {
    guard let current = currentUser, current.uid == uid else {
      throw AuthenticationError.notAuthenticated
    }
    return current.idToken == rejected
      ? try await renewedToken(of: current) : try await idToken()
  }

  private func renewedToken(of current: Session) async throws -> String {
    do {
      let fresh = try await server.refresh(current.refreshToken)
      var renewed = current
      renewed.idToken = fresh.idToken
      renewed.refreshToken = fresh.refreshToken
      renewed.expiry = now().addingTimeInterval(Self.lifetimeSeconds)
      let new = renewed
      change(new) { $0?.uid == new.uid }
      return new.idToken
    } catch AuthenticationError.notAuthenticated {
      change(nil) { $0 == current }
      throw AuthenticationError.notAuthenticated
    }
  }

  private func keep(_ new: Session) -> Session {
    change(new)
    return new
  }

  private func session(of account: AuthenticationServer.Account) -> Session {
    let seconds = TimeInterval(account.expiresIn) ?? Self.lifetimeSeconds
    return Session(
      uid: account.localId,
      email: account.email ?? "",
      idToken: account.idToken,
      refreshToken: account.refreshToken,
      expiry: now().addingTimeInterval(seconds)
    )
  }

  private static func isTemporary(_ error: FirestoreError) -> Bool {
    [.unavailable, .deadlineExceeded, .internal, .aborted, .resourceExhausted, .unknown]
      .contains(error.code)
  }

  private static let attemptsMax = 4
  private static let backOff = BackOff(initial: .milliseconds(200), maximum: .seconds(1))
  private static let lifetimeSeconds: TimeInterval = 3600
  private static let marginSeconds: TimeInterval = 300
}

/// The tokens of one user for as long as they are signed in.
private struct SessionTokens: IDTokenSource {
  let uid: String
  let authentication: AuthenticationService

  func idToken(replacing rejected: String?) async throws -> String {
    do {
      return try await authentication.idToken(of: uid, replacing: rejected)
    } catch AuthenticationError.networkError {
      throw FirestoreError(.unavailable, "the user's token cannot be renewed now")
    }
  }
}
