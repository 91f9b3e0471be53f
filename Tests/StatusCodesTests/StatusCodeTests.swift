import StatusCodes
import Testing

@Suite("Status codes")
struct StatusCodeTests {
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

  @Test("A status error describes itself by name")
  func statusErrors() {
    #expect(StatusError.invalidArgument("bad x").description == "INVALID_ARGUMENT: bad x")
    #expect(StatusError(.aborted, "a") != StatusError(.aborted, "b"))
  }
}
