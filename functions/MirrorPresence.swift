public import FunctionsRuntime
import PsstBackend
public import PsstModels

extension AppFunctions {
  /// Copies the presence of a user from the Realtime Database to Firestore.
  ///
  /// The newer time wins, whatever the order in which events arrive.
  public var mirrorPresence: OnValueWritten<Lenient<UserPresence>> {
    .init("mirrorPresence", at: "presence/{uid}", options: .init(retry: true)) { event in
      let uid = try event.params.uid
      var logger = event.logger
      logger[metadataKey: "user.id"] = "\(uid)"
      let outcome = try await sortingFailures(logger) {
        try await services.presences.mirror(event.data.after?.value, of: uid, at: event.time)
      }
      logger.info("Presence handled", metadata: ["outcome": "\(outcome)"])
    }
  }
}
