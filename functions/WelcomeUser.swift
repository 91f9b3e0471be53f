import FirestoreClient
public import FunctionsRuntime
import PsstBackend
public import PsstModels

extension AppFunctions {
  /// Writes the assistant's first message to a new user.
  ///
  /// An event may arrive twice. The ids are the same each time, and `create` refuses what exists,
  /// so the user is welcomed once.
  public var welcomeUser: OnDocumentCreated<User> {
    .init("welcomeUser", at: "users/{uid}", options: .init(retry: true)) { event in
      let user = event.data
      let hint =
        user.effectiveRole == .client
        ? "As soon as your trainer has added you, ask me about anything you wrote to each other."
        : "Add your first client by their email address, and ask me what they told you."
      let name = user.displayName.isEmpty ? "" : ", \(user.displayName)"

      let conversation = services.firestore.document(
        "users/\(try event.params.uid)/ai_conversations/welcome"
      )
      var batch = services.firestore.batch()
      try batch.create(
        conversation,
        ["createdAt": .serverTimestamp, "updatedAt": .serverTimestamp]
      )
      try batch.create(
        conversation.collection("messages").document("welcome"),
        [
          "role": "assistant", "content": .value("Welcome to Psst\(name)! \(hint)"),
          "timestamp": .serverTimestamp, "turnId": "welcome",
        ]
      )
      do {
        try await batch.commit()
        event.logger.info("User welcomed")
      } catch let error as FirestoreError where error.code == .alreadyExists {
        event.logger.info("User welcomed before")
      }
    }
  }
}
