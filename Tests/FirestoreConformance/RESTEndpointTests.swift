import OutboundHTTP
import StatusCodes
import Testing

/// Behavior that only REST has.
@Suite("The REST endpoint")
struct RESTEndpointTests {
  private let root = "/v1/projects/demo-psst/databases/(default)/documents"

  @Test("The root answers Ok")
  func liveness() async throws {
    try await withFirestore { firestore in
      let response = try await firestore.rest.send("GET", "/", authorization: nil)

      #expect(response.status == 200 && response.text == "Ok")
    }
  }

  @Test(
    "Resetting a database deletes its documents and no other's",
    arguments: ["(default)", "%28default%29"]
  )
  func reset(database: String) async throws {
    try await withFirestore { firestore in
      let other = root.replacing("(default)", with: "other")
      for parent in [root, other] {
        _ = try await firestore.rest.send("POST", "\(parent)/c?documentId=a", "{}")
      }
      let response = try await firestore.rest.send(
        "DELETE",
        "/emulator/v1/projects/demo-psst/databases/\(database)/documents",
        authorization: nil
      )

      #expect(response.status == 200)
      #expect(try await firestore.rest.send("GET", "\(root)/c/a").status == 404)
      #expect(try await firestore.rest.send("GET", "\(other)/c/a").status == 200)
    }
  }

  @Test("JSON is taken in both spellings, whatever the content type says")
  func bothCasings() async throws {
    try await withFirestore { firestore in
      let body = #"""
        {"writes":[{"update":{"name":"projects/demo-psst/databases/(default)/documents/c/a",
         "fields":{"n":{"integer_value":7},"m":{"nullValue":"NULL_VALUE"}}},
         "current_document":{"exists":false}}]}
        """#
      let response = try await firestore.rest.send(
        "POST",
        "\(root):commit?key=abc&$alt=json&prettyPrint=false",
        body,
        headers: ["content-type": "text/plain"]
      )
      let stored = try await firestore.rest.send(
        "GET",
        "\(root)/c/a?mask.field_paths=n&mask.field_paths=m"
      )

      #expect(response.status == 200, "\(response.text)")
      #expect(
        try JSON.normalized(stored.text)
          == JSON.normalized(
            #"""
            {"name":"projects/demo-psst/databases/(default)/documents/c/a",
             "fields":{"n":{"integerValue":"7"},"m":{"nullValue":null}}}
            """#
          )
      )
    }
  }

  @Test(
    "JSON that fits no message is refused",
    arguments: [
      (#"{"writes":[{"foo":1}]}"#, #"Unknown name "foo" at 'writes[0]': Cannot find field."#, true),
      (#"{"writes":"#, "Unexpected end of string. Expected a value.\n\n^", false),
    ]
  )
  func badJSON(body: String, complaint: String, hasPlace: Bool) async throws {
    try await withFirestore { firestore in
      let response = try await firestore.rest.send("POST", "\(root):commit", body)
      let error = try JSON.object(response.text)["error"] as? [String: Any]

      #expect(response.status == 400)
      #expect(error?["status"] as? String == "INVALID_ARGUMENT")
      let message = "Invalid JSON payload received. \(complaint)"
      #expect(error?["message"] as? String == message)
      let details = error?["details"] as? [[String: Any]]
      #expect((details != nil) == hasPlace)
      guard let detail = details?.first else { return }
      #expect(detail["@type"] as? String == "type.googleapis.com/google.rpc.BadRequest")
      #expect(
        detail["fieldViolations"] as? [[String: String]]
          == [["field": "writes[0]", "description": message]]
      )
    }
  }

  @Test(
    "Unknown and malformed query parameters are refused",
    arguments: [
      (
        "foo=1",
        "Invalid JSON payload received. Unknown name \"foo\": Cannot bind query parameter. "
          + "Field 'foo' could not be found in request message."
      ),
      (
        "a.bC=1&x=2",
        "Invalid JSON payload received. Unknown name \"a.bC\": Cannot bind query parameter. "
          + "Field 'bC' could not be found in request message.\n"
          + "Invalid JSON payload received. Unknown name \"x\": Cannot bind query parameter. "
          + "Field 'x' could not be found in request message."
      ),
      ("pageSize=x", "Invalid value at 'page_size' (TYPE_INT32), \"x\""),
      ("showMissing=maybe", "Invalid value at 'show_missing' (TYPE_BOOL), \"maybe\""),
      (
        "readTime=today",
        "Invalid value at 'read_time' (type.googleapis.com/google.protobuf.Timestamp), "
          + "Field 'readTime', Illegal timestamp format; timestamps must end with 'Z' or have a "
          + "valid timezone offset."
      ),
      (
        "transaction=@@@",
        "Invalid value at 'transaction' (TYPE_BYTES), Base64 decoding failed for \"@@@\""
      ),
      (
        "transaction=AAAA&readTime=2024-01-01T00:00:00Z",
        "Invalid value (oneof), oneof field 'consistency_selector' is already set. Cannot set "
          + "'transaction'"
      ),
    ]
  )
  func badParameters(query: String, message: String) async throws {
    try await withFirestore { firestore in
      let response = try await firestore.rest.send("GET", "\(root)/c?\(query)")
      let error = try JSON.object(response.text)["error"] as? [String: Any]

      #expect(response.status == 400 && error?["message"] as? String == message)
    }
  }

  @Test("A header that names no method is refused, and nothing is written")
  func invalidOverride() async throws {
    try await withFirestore { firestore in
      let refused = try await firestore.rest.send(
        "POST",
        "\(root)/c?documentId=a",
        "{}",
        headers: ["X-HTTP-Method-Override": "DEL ETE"]
      )
      #expect(refused.status == 400)
      #expect(try await firestore.rest.send("GET", "\(root)/c/a").status == 404)
    }
  }

  @Test(
    "A client that may only send POST names the method in a header",
    arguments: ["DELETE", "delete"]
  )
  func methodOverride(name: String) async throws {
    try await withFirestore { firestore in
      let created = try await firestore.rest.send("POST", "\(root)/c?documentId=a", "{}")
      #expect(created.status == 200)
      let deleted = try await firestore.rest.send(
        "POST",
        "\(root)/c/a",
        headers: ["X-HTTP-Method-Override": name]
      )
      #expect(deleted.status == 200)
      #expect(try await firestore.rest.send("GET", "\(root)/c/a").status == 404)
    }
  }

  @Test("A verb behind a collection of the root belongs to its name, as in production")
  func verbOfCollection() async throws {
    try await withFirestore { firestore in
      let body = #"{"structuredQuery":{"from":[{"collectionId":"c"}]}}"#
      let response = try await firestore.rest.send("POST", "\(root)/c:runQuery", body)
      let error = try JSON.object(response.text)["error"] as? [String: Any]
      #expect(
        error?["message"] as? String
          == "Invalid JSON payload received. Unknown name \"structuredQuery\" at 'document': "
          + "Cannot find field."
      )
      let below = try await firestore.rest.send("POST", "\(root)/c/a:runQuery", body)
      #expect(below.status == 200)
    }
  }

  @Test("The error of a streamed method is an array of one")
  func streamedError() async throws {
    try await withFirestore { firestore in
      let response = try await firestore.rest.send(
        "POST",
        "\(root):runQuery",
        #"{"structuredQuery":{"limit":-1}}"#
      )

      #expect(response.status == 400)
      #expect(
        response.text
          == #"[{"error":{"code":400,"message":"limit is negative","status":"INVALID_ARGUMENT"}}]"#
      )
    }
  }

  @Test(
    "A body over 11 MiB is refused with a code that no client retries",
    arguments: EndpointKind.allCases
  )
  func tooLarge(endpoint: EndpointKind) async throws {
    try await withFirestore { firestore in
      let blob = String(repeating: "A", count: 15 * 1024 * 1024)
      let name = "projects/demo-psst/databases/(default)/documents/c/a"
      let request = #"""
        {"database":"projects/demo-psst/databases/(default)","writes":[{"update":
         {"name":"\#(name)","fields":{"a":{"bytesValue":"\#(blob)"}}}}]}
        """#

      await #expect(
        throws: StatusError.invalidArgument(
          "Request payload size exceeds the limit: 11534336 bytes."
        )
      ) {
        try await firestore.endpoint(endpoint).call(.commit, request, authorization: "Bearer owner")
      }
    }
  }

  @Test("Pages of other origins may ask, and may read errors")
  func crossOrigin() async throws {
    try await withFirestore { firestore in
      let origin: OutboundHeaders = [
        "origin": "http://localhost:3000", "access-control-request-headers": "x-custom",
      ]
      let preflight = try await firestore.rest.send(
        "OPTIONS",
        "\(root):commit",
        headers: origin,
        authorization: nil
      )
      let missing = try await firestore.rest.send("GET", "\(root)/c/a", headers: origin)

      #expect(preflight.status == 200)
      #expect(preflight.headers["access-control-allow-origin"] == "http://localhost:3000")
      #expect(preflight.headers["access-control-allow-headers"] == "x-custom")
      #expect(missing.status == 404)
      #expect(missing.headers["access-control-allow-origin"] == "http://localhost:3000")
    }
  }

  @Test(
    "Paths and methods that mean nothing are not found",
    arguments: [
      ("GET", "/v2/x"), ("POST", "/v1/projects/p/databases/d/documents:fly"),
      ("PUT", "/v1/projects/p/databases/d/documents/c/a"),
      ("GET", "/v1/projects/p/databases/d/documents"), ("GET", "/v1/%zz"),
    ]
  )
  func unknownPath(method: String, path: String) async throws {
    try await withFirestore { firestore in
      let response = try await firestore.rest.send(method, path)

      #expect(response.status == 404 && response.text.contains("NOT_FOUND"))
    }
  }
}
