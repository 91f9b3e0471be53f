public import FunctionsRuntime
public import PsstServices

/// The functions on messages and their chats; each is declared in a file of its own.
public struct MessageFunctions: Sendable {
  let services: MessageServices

  /// Functions over these services.
  public init(services: MessageServices) {
    self.services = services
  }

  /// The functions as an app, to be run by a worker.
  public var app: FunctionsApp {
    FunctionsApp {
      embedMessage
      semanticSearch
      refreshChatMembers
    }
  }

  /// The keys of providers, which a worker gets only if its function asks for them.
  static let secrets = ["OPENAI_API_KEY", "PINECONE_API_KEY"]
}

extension ServiceError {
  /// The failure as an event's handler reports it.
  var eventError: EventError {
    guard isTransient || kind == .quotaExhausted else { return .permanent(message, cause: self) }
    // Without a wish of the service the wait grows with the attempts, from this on.
    return .retry(after: retryAfter ?? .seconds(1), message, cause: self)
  }

  /// The failure as the client of a callable sees it.
  var callableError: CallableError {
    let seconds = retryAfter.map { ["retryAfterSeconds": Double($0.components.seconds)] }
    return switch kind {
    case .unavailable:
      CallableError(.unavailable, "Search is not available right now.", details: seconds)
    case .rateLimited, .quotaExhausted:
      CallableError(.resourceExhausted, "Search is over its quota.", details: seconds)
    case .misconfigured: CallableError(.failedPrecondition, "Search is not configured correctly.")
    case .refused, .notFound, .alreadyExists: CallableError(.internal, "Search failed.")
    }
  }
}
