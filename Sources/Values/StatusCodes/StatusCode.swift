/// A canonical status code with its gRPC number and its name in Google's JSON APIs.
///
/// The HTTP statuses are those of `google.rpc.Code`. Firestore REST, callables and the control API
/// all use this table.
public enum StatusCode: Int, Sendable, Hashable, CaseIterable, Codable {
  case ok = 0
  case cancelled = 1
  case unknown = 2
  case invalidArgument = 3
  case deadlineExceeded = 4
  case notFound = 5
  case alreadyExists = 6
  case permissionDenied = 7
  case resourceExhausted = 8
  case failedPrecondition = 9
  case aborted = 10
  case outOfRange = 11
  case unimplemented = 12
  case `internal` = 13
  case unavailable = 14
  case dataLoss = 15
  case unauthenticated = 16

  /// The name in Google's JSON error bodies, such as `INVALID_ARGUMENT`.
  public var name: String { Self.table[rawValue].name }

  /// The HTTP status for this code.
  public var httpStatus: Int { Self.table[rawValue].http }

  /// Returns the code with this name in JSON; nil if there is none.
  public init?(name: String) {
    guard let index = Self.table.firstIndex(where: { $0.name == name }) else { return nil }
    self.init(rawValue: index)
  }

  private static let table: [(name: String, http: Int)] = [
    ("OK", 200), ("CANCELLED", 499), ("UNKNOWN", 500), ("INVALID_ARGUMENT", 400),
    ("DEADLINE_EXCEEDED", 504), ("NOT_FOUND", 404), ("ALREADY_EXISTS", 409),
    ("PERMISSION_DENIED", 403), ("RESOURCE_EXHAUSTED", 429), ("FAILED_PRECONDITION", 400),
    ("ABORTED", 409), ("OUT_OF_RANGE", 400), ("UNIMPLEMENTED", 501), ("INTERNAL", 500),
    ("UNAVAILABLE", 503), ("DATA_LOSS", 500), ("UNAUTHENTICATED", 401),
  ]
}
