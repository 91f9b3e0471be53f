import FirestoreClient
public import FunctionsRuntime
import PsstBackend
import PsstModels
public import PsstServices

extension AppFunctions {
  /// Tells one of two people whether the client is a contact of the trainer.
  ///
  /// The access rules let only the trainer read contacts, and a client learns no more than this.
  public var validateRelationship: OnCall<ValidateRelationshipRequest, ValidateRelationshipReply> {
    .init("validateRelationship", callers: .users) { request in
      let uid = try request.requireUser()
      let (trainerID, clientID) = (request.data.trainerId, request.data.clientId)
      guard trainerID.isUserID, clientID.isUserID, [trainerID, clientID].contains(uid) else {
        throw CallableError(.permissionDenied, "You must be the trainer or the client.")
      }
      let contact = Client.reference(
        in: services.firestore,
        trainerID: trainerID,
        clientID: clientID
      )
      return ValidateRelationshipReply(isContact: try await contact.get().exists)
    }
  }
}
