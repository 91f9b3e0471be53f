public import FirestoreClient
import Logging
import PsstModels
import PsstServices

/// A service that reminds trainers of clients without messages for a while.
///
/// A period of silence begins with the contact's last message, or with the contact itself. Each
/// period leads to one reminder, whose id is derived from the trainer, the client and the
/// beginning. Runs may therefore be repeated and killed, and a reminder that the trainer completed
/// or deleted does not come back.
public struct InactiveClients: Sendable {
  private let firestore: Firestore
  private let documents: DocumentReader

  /// The numbers of trainers and of a trainer's contacts per page.
  ///
  /// A page of contacts is one transaction, with at most two writes per contact.
  private static let trainersPageSize = 100
  private static let contactsPageSize = 200
  /// The maximum number of trainers processed concurrently.
  private static let concurrency = 8
  /// The default number of days of silence.
  private static let daysDefault = 14
  /// The range of days in preferences; other values are clamped to it.
  private static let daysRange = 1...365
  private static let day: Int64 = 86_400_000_000
  private static let nameBytesMax = 100

  /// Creates the service for a database.
  init(firestore: Firestore, documents: DocumentReader) {
    self.firestore = firestore
    self.documents = documents
  }

  /// The result of a run.
  public struct Report: Sendable, Hashable {
    /// The number of trainers with contacts.
    public var trainers = 0
    /// The number of contacts examined.
    public var contacts = 0
    /// The number of clients that have been silent for long enough.
    public var silent = 0
    /// The number of reminders written.
    public var reminded = 0
    /// The number of trainers whose clients could not all be examined.
    public var failed = 0

    fileprivate static func += (left: inout Report, right: Report) {
      left.trainers += right.trainers
      left.contacts += right.contacts
      left.silent += right.silent
      left.reminded += right.reminded
      left.failed += right.failed
    }
  }

  /// Writes a reminder for each period of silence without one, as of the given time.
  ///
  /// A trainer or contact that cannot be read is skipped. A trainer whose contacts cannot be loaded
  /// from the database is counted as failed, and the others are processed. Throws `FirestoreError`
  /// if the list of trainers or their users cannot be loaded.
  public func remind(at now: Timestamp) async throws -> Report {
    var report = Report()
    var token: String?
    repeat {
      let page = try await firestore.collection(Client.collection)
        .listDocuments(pageSize: Self.trainersPageSize, pageToken: token)
      report += try await remind(page.references.map(\.id), at: now)
      token = page.nextPageToken
    } while token != nil
    return report
  }

  private func remind(_ trainerIDs: [String], at now: Timestamp) async throws -> Report {
    let users = firestore.collection(User.collection)
    let people = try await firestore.getAll(trainerIDs.map { users.document($0) })
    // Contacts of users who are not trainers are ignored.
    let trainers = people.filter {
      documents.read($0, as: User.self)?.value?.effectiveRole == .trainer
    }
    return try await withThrowingTaskGroup(of: Report.self) { group in
      var waiting = trainers.map(\.id)[...]
      var report = Report()
      for _ in 0..<Self.concurrency {
        guard let next = waiting.popFirst() else { break }
        group.addTask { try await remind(trainer: next, at: now) }
      }
      while let part = try await group.next() {
        report += part
        if let next = waiting.popFirst() {
          group.addTask { try await remind(trainer: next, at: now) }
        }
      }
      return report
    }
  }

  private func remind(trainer trainerID: String, at now: Timestamp) async throws -> Report {
    var report = Report(trainers: 1)
    do {
      let wish = try await documents.preferences(of: trainerID, in: firestore).inactiveDays
      let days = min(
        max(wish ?? Self.daysDefault, Self.daysRange.lowerBound),
        Self.daysRange.upperBound
      )
      let latest = Timestamp(microseconds: now.microseconds - Int64(days) * Self.day)
      let contacts = firestore.collection(Client.collection).document(trainerID)
        .collection(Client.clients)
      try await contacts.query.pages(of: Self.contactsPageSize) { page in
        let silent = page.compactMap { Silence($0, documents, until: latest) }
        report.contacts += page.count
        report.silent += silent.count
        report.reminded += try await remind(trainer: trainerID, of: silent, at: now)
        return true
      }
    } catch let error as FirestoreError {
      Logger.current.warning(
        "A trainer's silent clients are not known",
        metadata: ["trainer.id": "\(trainerID)", "reason": "\(error)"]
      )
      report.failed = 1
    }
    return report
  }

  /// Writes the missing reminders for a page of contacts, and returns their number.
  private func remind(
    trainer trainerID: String,
    of silences: [Silence],
    at now: Timestamp
  ) async throws -> Int {
    guard !silences.isEmpty else { return 0 }
    let ids = silences.map { silence in
      ContentHash.of([
        "inactiveClient", trainerID, silence.clientID, "\(silence.since.microseconds)",
      ])
    }
    return try await firestore.runTransaction { transaction in
      let causes = try await transaction.getAll(
        ids.map { ReminderCause.reference($0, in: firestore) }
      )
      var count = 0
      for (silence, cause) in zip(silences, causes) where !cause.exists {
        let days = (now.microseconds - silence.since.microseconds) / Self.day
        let name = silence.name.oneLine.prefix(bytesMax: Self.nameBytesMax)
        let text = """
          \(name.isEmpty ? "A client" : name) and you have not written to each other for \(days) \
          \(days == 1 ? "day" : "days").
          """
        try ReminderCause(trainerId: trainerID, text: text)
          .write(cause.id, dueDate: now, firestore, transaction)
        count += 1
      }
      return count
    }
  }
}

/// A client without messages for a long time.
private struct Silence: Sendable {
  var clientID: String
  var name: String
  var since: Timestamp

  /// Creates the silence of a contact.
  ///
  /// The result is nil if the silence began after `latest`, or if the contact or its last time
  /// cannot be read.
  init?(_ snapshot: DocumentSnapshot, _ documents: DocumentReader, until latest: Timestamp) {
    guard let contact = documents.read(snapshot, as: Client.self)?.value else { return nil }
    // A last time that is unreadable does not mean that there was no message.
    let hasTime = snapshot["lastContactedAt"].map { $0 != .null } ?? false
    guard !hasTime || contact.lastContactedAt != nil else { return nil }
    clientID = snapshot.id
    name = contact.displayName
    since = contact.lastContactedAt ?? contact.addedAt
    guard since <= latest else { return nil }
  }
}

extension BackendServices {
  /// The service that reminds trainers of silent clients.
  public var inactiveClients: InactiveClients {
    InactiveClients(firestore: firestore, documents: documents)
  }
}
