import FirestoreClient

/// The reason that a service skipped a message.
public struct SkipReason: Error, Sendable, Hashable, CustomStringConvertible {
  /// The text of the reason, as the continuation of "skipped because".
  public var description: String

  private init(_ description: String) {
    self.description = description
  }

  static let messageGone = SkipReason("the message does not exist any more")
  static let blankText = SkipReason("its text is blank")
  static let mediaWithoutText = SkipReason("it is media without text")
  static let idTooLong = SkipReason("its ids are too long")
  static let chatMissing = SkipReason("its chat does not exist")

  static func messageUnreadable(_ error: ValueCodingError) -> SkipReason {
    SkipReason("it cannot be read: \(error)")
  }

  static func chatUnreadable(_ error: ValueCodingError) -> SkipReason {
    SkipReason("its chat cannot be read: \(error)")
  }
}

extension SkipReason {
  static let noModel = SkipReason(
    "no chat model is configured; see PSST_CHAT_MODEL in .env.example"
  )
  static let smallTalk = SkipReason("its text says nothing about anybody")
  static let groupChat = SkipReason("it is in a group chat")
  static let notOneToOne = SkipReason("its chat is not one of two people")
  static let strangerSent = SkipReason("its sender is not in the chat")
  static let memberUnknown = SkipReason("a member of the chat has no user")
  static let roleUnknown = SkipReason("a member of the chat has an unknown role")
  static let trainersOnly = SkipReason("its chat is one of two trainers")
  static let clientsOnly = SkipReason("its chat is one of two clients")
  static let noContact = SkipReason("the client is none of the trainer's contacts")
  static let readBefore = SkipReason("this version of it has been read")

  static func profileUnreadable(_ error: ValueCodingError) -> SkipReason {
    SkipReason("the client's profile cannot be read: \(error)")
  }
}
