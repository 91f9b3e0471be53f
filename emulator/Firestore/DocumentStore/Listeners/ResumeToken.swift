import DocumentModel
import RuntimeSupport

/// Where a listener stands: a time up to which it has been told everything.
///
/// Opaque to clients, which keep it across restarts of theirs and of the server. It names the store
/// and the database that it was made for.
struct ResumeToken: Sendable, Hashable {
  var store: UInt64
  var database: DatabaseName
  var readTime: Timestamp

  private static let version: UInt8 = 1
  private static let byteCount = 29
  /// From the epoch to the end of the year 9999, in microseconds.
  private static let times: Range<Int64> = 0..<253_402_300_800_000_000

  /// The bytes that a client gets.
  var bytes: [UInt8] {
    var encoder = KeyEncoder()
    encoder.append(raw: [Self.version])
    encoder.append(store)
    encoder.append(Self.digest(database))
    encoder.append(UInt64(bitPattern: readTime.microseconds))
    let check = Self.digest(encoder.bytes)
    return encoder.bytes + (0..<4).map { UInt8(truncatingIfNeeded: check >> ($0 * 8)) }
  }

  /// What a client's bytes mean to a store.
  enum Reading: Equatable {
    case readTime(Timestamp)
    /// The token was made by a store whose documents are gone.
    case ofAnotherStore
  }

  /// Reads a client's bytes; throws `INVALID_ARGUMENT` when they are no token of this database.
  static func read(
    _ bytes: [UInt8],
    store: UInt64,
    database: DatabaseName
  ) throws(StatusError) -> Reading {
    guard bytes.count == byteCount, bytes[0] == version else { throw invalid }
    func number(_ start: Int) -> UInt64 {
      bytes[start..<start + 8].reduce(0) { $0 << 8 | UInt64($1) }
    }
    let time = Timestamp(microseconds: Int64(bitPattern: number(17)))
    let token = ResumeToken(store: number(1), database: database, readTime: time)
    // Anybody can compute the digest, so the time is as little to be trusted as any other.
    guard token.bytes == bytes, times.contains(time.microseconds) else { throw invalid }
    return token.store == store ? .readTime(time) : .ofAnotherStore
  }

  static let invalid = StatusError.invalidArgument(
    "Invalid resume token: it was not made for this database, or was damaged."
  )

  private static func digest(_ database: DatabaseName) -> UInt64 {
    digest(Array(database.description.utf8))
  }

  /// FNV-1a, which is enough to notice damage.
  private static func digest(_ bytes: [UInt8]) -> UInt64 {
    bytes.reduce(0xcbf2_9ce4_8422_2325) { ($0 ^ UInt64($1)) &* 0x100_0000_01b3 }
  }
}
