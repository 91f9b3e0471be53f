import DocumentModel
import EventLog
import Events
import Identity
import StorageEngine
import Testing

let database = DatabaseName(project: "demo-test")

/// A change of one small document.
func change(_ number: Int, before: Int? = nil, after: Int? = 1, text: String = "") -> DocumentChange
{
  let name = DocumentName(database: database, path: ResourcePath(["items", "i\(number)"]))
  func document(_ value: Int) -> FirestoreDocument {
    FirestoreDocument(
      name: name,
      fields: ["value": .integer(Int64(value)), "text": .string(text)],
      createTime: Timestamp(microseconds: 1),
      updateTime: Timestamp(microseconds: Int64(value))
    )
  }
  return DocumentChange(name: name, before: before.map(document), after: after.map(document))
}

/// Commits one change with the given commit time and returns its sequence.
@discardableResult
func commit(
  _ change: DocumentChange,
  at microseconds: Int64 = 0,
  to storage: any OrderedStorage
) async throws -> UInt64 {
  var batch = StorageBatch()
  CommitLog.append(
    [change],
    commitTime: Timestamp(microseconds: microseconds),
    database: database,
    auth: .admin,
    to: &batch
  )
  return try await storage.commit(batch)
}

/// Commits one change and returns its entry as a committer offers it to the tailer.
func commitEntry(_ change: DocumentChange, to storage: any OrderedStorage) async throws
  -> EventEntry
{
  var batch = StorageBatch()
  let made = CommitLog.append(
    [change],
    commitTime: Timestamp(microseconds: 0),
    database: database,
    auth: .admin,
    to: &batch
  )
  var entry = try #require(made)
  entry.record.sequence = try await storage.commit(batch)
  return entry
}

/// Takes a sequence without an event, as commits of other modules do.
func commitOther(to storage: any OrderedStorage) async throws {
  var batch = StorageBatch()
  batch.put(Keyspace("other"), [1], [1])
  try await storage.commit(batch)
}

/// Returns the sequences of the records in the log.
func logged(_ storage: any OrderedStorage) async throws -> [UInt64] {
  try await storage.read { snapshot in
    try CommitLog.records(after: 0, limit: .max, in: snapshot).map(\.sequence)
  }
}
