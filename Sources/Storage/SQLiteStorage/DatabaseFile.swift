import LibC
import StorageEngine

/// The identity of the database file: its owner, its version and its creation.
enum DatabaseFile {
  /// "HRTH", in SQLite's header field for the program that owns a file.
  static let applicationID: UInt32 = 0x4852_5448
  /// The version of the layout that `create` makes.
  static let version: UInt32 = 2
  /// The version of the layout that `upgrade` converts to the current one.
  private static let firstVersion: UInt32 = 1

  /// The statement that reads the sequence of the last commit, which is stored in the table `few`.
  static let selectSequence = "select n from few where k = x''"
  static let updateSequence = "update few set n = ?1 where k = x''"

  static func lostSequence(_ path: String) -> String {
    "\(path) has lost its last sequence; restore a copy"
  }

  /// Creates a missing file that only its owner can access.
  ///
  /// SQLite gives the files that belong to it the same permissions.
  static func reserve(_ path: String) {
    // If the file exists or cannot be created, SQLite handles that when it opens the file.
    let file = open(path, O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC, 0o600)
    if file >= 0 { _ = close(file) }
  }

  /// Throws for a file that does not belong to Hearth or is truncated, before SQLite can change it.
  ///
  /// A missing or empty file passes, because it is a store that has not been created yet.
  static func check(_ path: String, in files: FileAccess) throws {
    guard try files.exists(path) else { return }
    // While the file is being created, its journal can still undo all changes.
    if try files.exists("\(path)-journal") { return }
    let (header, size) = try files.read(path, bytes: 100)
    guard header.starts(with: "SQLite format 3\0".utf8), size >= header.count else {
      throw corrupt(path, "is not a database")
    }
    guard number(header, 68) == applicationID else {
      throw corrupt(path, "belongs to another program")
    }
    guard (firstVersion...version).contains(number(header, 60)) else {
      throw corrupt(path, "has version \(number(header, 60)) and this program reads \(version)")
    }
    // While the log contains pages, the file may be shorter than its header says.
    if try files.exists("\(path)-wal") { return }
    let pageBytes = Int(header[16]) << 8 | Int(header[17])
    let bytes = Int(number(header, 28)) * (pageBytes == 1 ? 65_536 : pageBytes)
    guard size >= bytes else { throw corrupt(path, "has \(size) bytes of \(bytes)") }
  }

  /// Creates the tables in one transaction if the file is empty.
  ///
  /// This runs before the write-ahead log is enabled, so that the identity is in the file itself.
  static func create(_ connection: SQLiteConnection) throws {
    guard try connection.number("select count(*) from sqlite_schema") == 0 else { return }
    try connection.execute(
      """
      begin immediate;
      pragma application_id = \(applicationID);
      pragma user_version = \(version);
      \(createFew)
      insert into few values (x'', x'', 0);
      commit;
      """
    )
  }

  private static let createFew = """
    create table few (k blob primary key, v blob not null, n integer not null) without rowid;
    """

  /// Converts the first layout to the current one, in one transaction.
  ///
  /// In the first layout each keyspace had its own table of the same form. The sequence had a
  /// separate table.
  static func upgrade(_ connection: SQLiteConnection) throws {
    guard try connection.number("pragma user_version") == Int64(firstVersion) else { return }
    var steps = ["\(createFew) insert into few select x'', x'', value from meta; drop table meta;"]
    for name in ["commit_clock", "event_trim", "event_cursors"] {
      guard try connection.hasTable("keyspace_\(name)") else { continue }
      steps.append(
        """
        insert into few select cast('\(name)' as blob) || x'00' || k, v, n from keyspace_\(name);
        drop table keyspace_\(name);
        """
      )
    }
    if try connection.hasTable("keyspace_events") {
      steps.append(
        """
        alter table keyspace_events rename to old_events;
        \(KeyspaceTable(Keyspace("events", .log)).creation);
        insert into keyspace_events select n, v from old_events order by n;
        drop table old_events;
        """
      )
    }
    do {
      try connection.execute(
        "begin immediate; \(steps.joined()) pragma user_version = \(version); commit"
      )
    } catch {
      connection.rollBack()
      throw error
    }
  }

  private static func corrupt(_ path: String, _ what: String) -> StorageError {
    StorageError(.corrupt, "\(path) \(what); move it away or choose another data folder")
  }

  private static func number(_ bytes: [UInt8], _ offset: Int) -> UInt32 {
    bytes[offset..<offset + 4].reduce(0) { $0 << 8 | UInt32($1) }
  }
}
