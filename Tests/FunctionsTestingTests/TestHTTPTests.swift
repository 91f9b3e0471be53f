import FunctionsTesting
import TestSupport
import Testing

@Suite("HTTP to the outside")
struct TestHTTPTests {
  private static let url = "https://api.example.com/x"

  /// An app with a trigger that sends one request to the URL in the document.
  private struct Sending: Sendable {
    let environment: TestEnvironment

    var app: FunctionsApp {
      FunctionsApp { sends }
    }

    var sends: OnDocumentCreated<FirestoreDocument> {
      .init("sends", at: "requests/{id}") { event in
        guard case .string(let url)? = event.data.fields["url"] else { return }
        let response = try await environment.http.send(OutboundRequest(method: "POST", url: url))
        event.logger.info("Answered", metadata: ["status": "\(response.status)"])
      }
    }
  }

  private func sending(_ environment: TestEnvironment) -> FunctionsApp {
    Sending(environment: environment).app
  }

  @Test("Answers come in the order of the script, and the last one stays")
  func script() async throws {
    try await withFunctions(\.app, Sending.init) { suite, functions in
      suite.http.on("POST", Self.url).respond(status: 503).respond(json: ["ok": true])
      for id in 1...3 {
        try await suite.firestore.document("requests/\(id)").set(["url": .value(Self.url)])
        try await suite.settle()
      }

      let statuses = suite.logs(of: functions.sends).map(\.metadata["status"])
      #expect(statuses == ["503", "200", "200"])
      #expect(suite.http.requests("POST", Self.url).count == 3)
      #expect(
        suite.http.exchanges.map(\.result) == [.status(503), .status(200), .status(200)]
      )
    }
  }

  @Test("A request that nothing is scripted for fails its function, and settling names it")
  func unscripted() async throws {
    try await withFunctions(sending) { suite in
      suite.http.on("GET", Self.url).respond()
      try await suite.firestore.document("requests/1").set(["url": .value(Self.url + "?a=1")])
      let issues = await recordedIssues { try await suite.settle() }

      #expect(issues.count == 1)
      #expect(issues.first?.text?.contains("POST https://api.example.com/x?a=1") == true)
      #expect(try await suite.deliveries().map(\.state) == [.failed])
      // The request is reported only once.
      try await suite.settle()
    }
  }

  @Test("The same unscripted request is named once, with the number of times")
  func unscriptedOften() async throws {
    try await withFunctions(sending) { suite in
      for _ in 0..<12 {
        // The sender's error does not matter here.
        _ = try? await suite.http.send(OutboundRequest(url: Self.url))
      }
      _ = try? await suite.http.send(OutboundRequest(url: Self.url + "/y"))
      let issues = await recordedIssues { try await suite.settle() }

      let list = "these requests: GET \(Self.url) (12 times), GET \(Self.url)/y."
      #expect(issues.map { $0.text?.contains(list) } == [true])
    }
  }

  @Test("A request that no settling reported is reported at the end")
  func unscriptedAtTheEnd() async throws {
    let line = #line + 2
    let issues = await recordedIssues {
      try await withFunctions(sending) { suite in
        // The sender's error does not matter here.
        _ = try? await suite.http.send(OutboundRequest(url: Self.url))
      }
    }
    #expect(issues.map { $0.sourceLocation?.line } == [line])
    #expect(issues.first?.text?.contains("GET \(Self.url)") == true)
  }

  @Test("A test that ends with an error still names the requests, which may be its cause")
  func unscriptedBeforeAnError() async throws {
    let calling: (TestEnvironment) -> FunctionsApp = { environment in
      FunctionsApp {
        OnCall<String, Int>("asks") { request in
          try await environment.http.send(OutboundRequest(url: request.data)).status
        }
      }
    }
    var thrown: (any Error)?
    let issues = await recordedIssues {
      do {
        try await withFunctions(calling) { suite in
          try await suite.call(OnCall<String, Int>("asks") { _ in 0 }, Self.url)
        }
      } catch {
        thrown = error
      }
    }
    #expect(issues.map { $0.text?.contains("GET \(Self.url)") } == [true])
    let error = try #require(thrown as? CallableError)
    #expect(error.code == .internal && error.message == "INTERNAL")
    #expect("\(error)".contains("The handler threw: "), "\(error)")
    #expect("\(error)".contains(Self.url), "\(error)")
  }

  @Test(
    "Addresses fit without their query, with it, or by their beginning",
    arguments: [
      ("https://h/a", "https://h/a", true), ("https://h/a", "https://h/a?q=1", true),
      ("https://h/a?q=1", "https://h/a?q=1", true), ("https://h/a?q=1", "https://h/a?q=2", false),
      ("https://h/a/*", "https://h/a/b/c?q=1", true), ("https://h/a/*", "https://h/b", false),
      ("https://h/a", "https://h/ab", false),
    ]
  )
  func addresses(script: String, request: String, fits: Bool) async throws {
    try await withFunctions(sending) { suite in
      suite.http.on("GET", "https://*").respond(status: 404)
      suite.http.on("GET", script).respond(status: 200)
      let response = try await suite.http.send(OutboundRequest(url: request))
      #expect(response.status == (fits ? 200 : 404))
    }
  }

  @Test("A connection can break, and an answer be computed")
  func computed() async throws {
    try await withFunctions(sending) { suite in
      suite.http.on("GET", Self.url).fail(.timedOut, "too slow").respond { request in
        OutboundResponse(status: 200, body: Array(request.method.utf8))
      }
      let error = await #expect(throws: OutboundHTTPError.self) {
        try await suite.http.send(OutboundRequest(url: Self.url))
      }
      #expect(error == OutboundHTTPError(.timedOut, "too slow"))
      let response = try await suite.http.stream(OutboundRequest(url: Self.url))
      #expect(try await response.body.collect(upTo: 100) == Array("GET".utf8))
      #expect(suite.http.exchanges.map(\.result) == [.error("too slow"), .status(200)])
    }
  }

  @Test("A transport mounted at an address gets what is below it, and nothing else")
  func mounted() async throws {
    try await withFunctions(sending) { suite in
      let echo = ScriptedHTTP { OutboundResponse(status: 200, body: Array($0.url.utf8)) }
      suite.http.mount(echo, at: "https://echo.test/v1/")
      suite.http.on("GET", "https://echo.test/v1/fixed").respond(body: "fixed")
      for (url, text) in [
        ("https://echo.test/v1/a?b", "https://echo.test/v1/a?b"),
        ("https://echo.test/v1", "https://echo.test/v1"),
        ("https://echo.test/v1/fixed", "fixed"),
      ] {
        let response = try await suite.http.send(OutboundRequest(url: url))
        #expect(response.text == text)
      }
      await #expect(throws: OutboundHTTPError.self) {
        try await suite.http.send(OutboundRequest(url: "https://echo.test/v10"))
      }
      let issues = await recordedIssues { try await suite.settle() }
      #expect(issues.first?.text?.contains("https://echo.test/v10") == true)
    }
  }
}
