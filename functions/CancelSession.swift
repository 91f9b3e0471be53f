import FirestoreClient
public import FunctionsRuntime
import PsstBackend
import PsstModels
import PsstServices

/// A request to cancel a session.
public struct CancelSessionRequest: Codable, Sendable {
  /// The uid of the trainer in whose calendar the session is.
  public var trainerId: String
  /// The id of the session in that calendar.
  public var eventId: String
}

extension AppFunctions {
  /// Cancels a session in a trainer's calendar for its client, and reminds the trainer of it.
  ///
  /// Clients cannot read or write a calendar themselves. The transaction writes both documents or
  /// neither, and runs again if the trainer changes the session meanwhile.
  public var cancelSession: OnCall<CancelSessionRequest, Void> {
    .init("cancelSession", callers: .users) { request in
      let uid = try request.requireUser()
      let trainerID = try request.data.trainerId.checkedID(of: "user", "trainerId")
      let eventID = try request.data.eventId.checkedID(of: "calendar event", "eventId")
      let firestore = services.firestore
      let reference = firestore.document("calendar/\(trainerID)/events/\(eventID)")

      try await firestore.runTransaction { transaction in
        let stored = try await transaction.get(reference)
        let client = try await transaction.get(firestore.document("users/\(uid)"))
        // Whether others' sessions exist is nobody's business.
        guard stored.exists, let session = try stored.data(as: Lenient<CalendarEvent>.self).value,
          session.clientId == uid
        else { throw CallableError(.notFound, "There is no such session of yours.") }
        if session.status == .cancelled { return }
        guard session.status == .scheduled, session.startTime > FunctionClock.now else {
          throw CallableError(.failedPrecondition, "Only a session to come can be cancelled.")
        }

        let name = try client.exists ? client.data(as: User.self).displayName : ""
        try transaction.update(reference, ["status": "cancelled"])
        try transaction.set(
          firestore.document("reminders/cancelled-\(ContentHash.of([trainerID, eventID]))"),
          Reminder(
            trainerId: trainerID,
            text: "\(name.isEmpty ? "A client" : name) has cancelled: \(session.title)",
            dueDate: session.startTime,
            createdBy: "ai"
          )
        )
      }
      request.logger.info("Session cancelled", metadata: ["calendar.event.id": "\(eventID)"])
    }
  }
}
