import FirestoreClient

/// The reason that a call as the signed-in user failed.
///
/// Each service turns it into its own error.
enum AccessFailure: Sendable, Hashable {
  case notAuthenticated
  case permissionDenied
  case notFound
  case alreadyExists
  /// The document has changed since it was read.
  case conflict
  /// No response came, or the server could not act; the same call may succeed later.
  case offline
  /// Too many calls, for the given reason; the same call may succeed later.
  case busy(String)
  /// The server has made a mistake, described by the given text; the same call may succeed later.
  case failed(String)
  /// The server does not accept the request, and never will.
  case refused(String)

  /// Throws `CancellationError` for a cancelled call, which is no failure.
  init(_ error: any Error) throws {
    switch error {
    case let error as FirestoreError: self.init(error.code, error.message)
    case let error as CallFailure: self.init(error.code, error.message)
    case let error as UserServiceError: self = error.failure
    case AuthenticationError.networkError: self = .offline
    case is AuthenticationError: self = .notAuthenticated
    case is CancellationError: throw error
    default: self = .refused("\(error)")
    }
  }

  private init(_ code: StatusCode, _ message: String) {
    self =
      switch code {
      case .unauthenticated: .notAuthenticated
      case .permissionDenied: .permissionDenied
      case .notFound: .notFound
      case .alreadyExists: .alreadyExists
      case .aborted: .conflict
      case .resourceExhausted: .busy(message)
      case .invalidArgument, .outOfRange, .unimplemented, .failedPrecondition: .refused(message)
      case .internal, .unknown, .dataLoss: .failed(message)
      default: .offline
      }
  }
}

extension Duration {
  /// The seconds that a person is asked to wait.
  var secondsRoundedUp: Int { max(1, Int((self / .seconds(1)).rounded(.up))) }
}

/// An error of a service that can express every failure of a call.
protocol AccessError: Error {
  init(_ failure: AccessFailure)
}

extension AccessError {
  /// Makes calls as the user and turns their failures into this error.
  ///
  /// Errors of this type and cancellation pass unchanged.
  @discardableResult
  static func mapping<Output>(_ calls: () async throws -> Output) async throws -> Output {
    do {
      return try await calls()
    } catch {
      throw try Self.of(error)
    }
  }

  /// Returns the service's form of an error; throws `CancellationError` if it is one.
  static func of(_ error: any Error) throws -> any Error {
    if error is Self { return error }
    return Self(try AccessFailure(error))
  }
}
