package import DatabaseTree

/// The Realtime Database's port.
package struct RealtimeDatabaseService: Sendable {
  let database: RealtimeDatabase

  package init(database: RealtimeDatabase) {
    self.database = database
  }
}
