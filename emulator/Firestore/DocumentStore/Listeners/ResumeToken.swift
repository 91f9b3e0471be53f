import DocumentModel
import StatusCodes

/// The read time up to which a listener has received every change.
///
/// Opaque to clients, which keep it across restarts of the client and of the server. It identifies
/// the store and the database that it was made for.
struct ResumeToken: Sendable, Hashable {
  var store: UInt64
  var database: DatabaseName
  var readTime: Timestamp

  private static let version: UInt8 = 1
  private static let byteCount = 29
  /// The valid times, from the epoch to the end of the year 9999, in microseconds.
  private static let times: Range<Int64> = 0..<253_402_300_800_000_000

  /// The encoded token as sent to the client.
  var bytes: [UInt8] {
    var encoder = KeyEncoder()
    encoder.append(raw: [Self.version])
    encoder.append(store)
    encoder.append(Self.digest(database))
    encoder.append(UInt64(bitPattern: readTime.microseconds))
    let check = Self.digest(encoder.bytes)
    return encoder.bytes + (0..<4).map { UInt8(truncatingIfNeeded: check >> ($0 * 8)) }
  }

  /// The meaning of a client's token for a store.
  enum Reading: Equatable {
    case readTime(Timestamp)
    /// The token was made by a store whose documents are gone.
    case ofAnotherStore
  }

  /// Decodes a client's token; throws `INVALID_ARGUMENT` if it is not a token of this database.
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
    // Anyone can compute the digest, so the time is no more trustworthy than other client input.
    guard token.bytes == bytes, times.contains(time.microseconds) else { throw invalid }
    return token.store == store ? .readTime(time) : .ofAnotherStore
  }

  static let invalid = StatusError.invalidArgument(
    "Invalid resume token: it was not made for this database, or was damaged."
  )

  private static func digest(_ database: DatabaseName) -> UInt64 {
    digest(Array(database.description.utf8))
  }

  /// Returns the FNV-1a hash, which is enough to detect damage.
  private static func digest(_ bytes: [UInt8]) -> UInt64 {
    bytes.reduce(0xcbf2_9ce4_8422_2325) { ($0 ^ UInt64($1)) &* 0x100_0000_01b3 }
  }
}
