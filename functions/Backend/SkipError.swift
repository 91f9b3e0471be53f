import FirestoreClient

/// The reason that a service skipped a message.
public struct SkipError: Error, Sendable, Hashable, CustomStringConvertible {
  /// The text of the reason, as the continuation of "skipped because".
  public var description: String

  private init(_ description: String) {
    self.description = description
  }

  static let messageGone = SkipError("the message does not exist any more")
  static let blankText = SkipError("its text is blank")
  static let mediaWithoutText = SkipError("it is media without text")
  static let idTooLong = SkipError("its ids are too long")
  static let chatMissing = SkipError("its chat does not exist")

  static func messageUnreadable(_ error: ValueCodingError) -> SkipError {
    SkipError("it cannot be read: \(error)")
  }

  static func chatUnreadable(_ error: ValueCodingError) -> SkipError {
    SkipError("its chat cannot be read: \(error)")
  }
}

extension SkipError {
  static let noModel = SkipError(
    "no chat model is configured; see PSST_CHAT_MODEL in .env.example"
  )
  static let smallTalk = SkipError("its text says nothing about anybody")
  static let groupChat = SkipError("it is in a group chat")
  static let notOneToOne = SkipError("its chat is not one of two people")
  static let strangerSent = SkipError("its sender is not in the chat")
  static let memberUnknown = SkipError("a member of the chat has no user")
  static let roleUnknown = SkipError("a member of the chat has an unknown role")
  static let trainersOnly = SkipError("its chat is one of two trainers")
  static let clientsOnly = SkipError("its chat is one of two clients")
  static let noContact = SkipError("the client is none of the trainer's contacts")
  static let readBefore = SkipError("this version of it has been read")

  static func profileUnreadable(_ error: ValueCodingError) -> SkipError {
    SkipError("the client's profile cannot be read: \(error)")
  }
}
