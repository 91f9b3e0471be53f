import RuntimeSupport
import TestSupport
import Testing

@Suite("Runtime support")
struct RuntimeSupportTests {
  @Test("Each failure doubles the wait up to the bound")
  func backOffDoubles() {
    let backOff = BackOff(initial: .milliseconds(100), maximum: .seconds(1))

    #expect(
      (0...6).map(backOff.delay)
        == [100, 100, 200, 400, 800, 1000, 1000].map { Duration.milliseconds($0) }
    )
    #expect(backOff.delay(afterFailures: .max) == .seconds(1))
  }

  @Test("Names and numbers of status codes lead back to them", arguments: StatusCode.allCases)
  func statusCodes(code: StatusCode) {
    #expect(StatusCode(name: code.name) == code)
    #expect(StatusCode(rawValue: code.rawValue) == code)
    #expect((200...599).contains(code.httpStatus))
  }

  @Test(
    "Statuses have the HTTP numbers of Google's APIs",
    arguments: [
      (StatusCode.ok, 200), (.invalidArgument, 400), (.unauthenticated, 401),
      (.permissionDenied, 403), (.notFound, 404), (.alreadyExists, 409), (.aborted, 409),
      (.resourceExhausted, 429), (.cancelled, 499), (.internal, 500), (.unavailable, 503),
      (.deadlineExceeded, 504), (.failedPrecondition, 400), (.unimplemented, 501),
    ]
  )
  func httpStatuses(code: StatusCode, http: Int) {
    #expect(code.httpStatus == http)
  }

  @Test("An unknown name is no status")
  func unknownStatus() {
    #expect(StatusCode(name: "NO_SUCH") == nil)
    #expect(StatusCode(name: "ok") == nil)
  }

  @Test("Random ids have the length and letters asked for, and a seed repeats them")
  func randomIDs() {
    var random = SeededGenerator(seed: 7)
    var again = SeededGenerator(seed: 7)
    let id = RandomID.make(using: &random)

    #expect(id.utf8.count == 20)
    #expect(
      id.utf8.allSatisfy {
        (48...57).contains($0) || (65...90).contains($0) || (97...122).contains($0)
      }
    )
    #expect(RandomID.make(using: &again) == id)
    #expect(RandomID.make(length: 0, using: &random) == "")
    #expect(RandomID.make() != RandomID.make())
  }

  @Test("A status error describes itself by name")
  func statusErrors() {
    #expect(StatusError.invalidArgument("bad x").description == "INVALID_ARGUMENT: bad x")
    #expect(StatusError(.aborted, "a") != StatusError(.aborted, "b"))
  }
}
