import StorageEngine

#if canImport(Darwin)
  import Darwin
#elseif canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#endif

/// The file's identity: its owner, its version, and how it is created.
enum DatabaseFile {
  /// "HRTH", in SQLite's field for the program that a file belongs to.
  static let applicationID: UInt32 = 0x4852_5448
  /// The layout described by `create`.
  static let version: UInt32 = 2
  /// The layout that `upgrade` can turn into the present one.
  private static let firstVersion: UInt32 = 1

  /// The sequence of the last commit stands beside the rows of the keyspaces that have few.
  static let selectSequence = "select n from few where k = x''"
  static let updateSequence = "update few set n = ?1 where k = x''"

  static func lostSequence(_ path: String) -> String {
    "\(path) has lost its last sequence; restore a copy"
  }

  /// Makes a missing file for its owner alone; SQLite gives the files beside it the same rights.
  static func reserve(_ path: String) {
    // A file that is there, or cannot be made, is met again when SQLite opens it.
    let file = open(path, O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC, 0o600)
    if file >= 0 { _ = close(file) }
  }

  /// Refuses a file that is not Hearth's or is cut short, before SQLite can touch it.
  ///
  /// A missing or empty file passes; it is a store that is yet to be made.
  static func check(_ path: String, in files: FileAccess) throws {
    guard try files.exists(path) else { return }
    // While the file is being created, its journal can still undo everything.
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
    // While the log holds pages, the file may be shorter than its header says.
    if try files.exists("\(path)-wal") { return }
    let pageBytes = Int(header[16]) << 8 | Int(header[17])
    let bytes = Int(number(header, 28)) * (pageBytes == 1 ? 65_536 : pageBytes)
    guard size >= bytes else { throw corrupt(path, "has \(size) bytes of \(bytes)") }
  }

  /// Makes the tables in one transaction when the file is empty.
  ///
  /// Runs before the write-ahead log is turned on, so that the identity is in the file itself.
  static func create(_ connection: Connection) throws {
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

  /// Turns the first layout into the present one, in one transaction.
  ///
  /// There each keyspace had a table of the same kind, and the sequence one of its own.
  static func upgrade(_ connection: Connection) throws {
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
