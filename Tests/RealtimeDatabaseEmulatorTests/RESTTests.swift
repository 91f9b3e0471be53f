import HTTPMessages
import HTTPSupport
import HTTPTypes
import Testing

@Suite("REST")
struct RESTTests {
  private static let tagHeader: HTTPFields = [
    .authorization: "Bearer owner", fieldName("X-Firebase-ETag"): "true",
  ]

  @Test("Each method answers with what production answers")
  func methods() async throws {
    try await ServiceFixture.with { service in
      let missing = try await service.send(.get, "/a.json?ns=test")
      #expect(missing.status == 200)
      #expect(missing.body == "null")
      #expect(missing.headers[.contentType] == "application/json; charset=utf-8")

      let put = try await service.send(.put, "/a.json?ns=test", #"{"b": {"c": 1}, "d": "x"}"#)
      #expect(put.body == #"{"b":{"c":1},"d":"x"}"#)
      let patch = try await service.send(.patch, "/a.json?ns=test", #"{"b/e": 2, "d": null}"#)
      #expect(patch.body == #"{"b/e":2,"d":null}"#)
      #expect(try await service.value("a") == #"{"b":{"c":1,"e":2}}"#)
      let post = try await service.send(.post, "/a/list.json?ns=test", "true")
      let name = try #require(post.body.wholeMatch(of: #/\{"name":"([-\w]{20})"\}/#)).1
      #expect(try await service.value("a/list/\(name)") == "true")
      #expect(try await service.send(.delete, "/a/b.json?ns=test").body == "null")
      #expect(try await service.value("a/b") == "null")
      #expect(try await service.send(.head, "/a.json?ns=test").status == 200)
      #expect(
        try await service.send(.post, "/a.json?ns=test&x-http-method-override=DELETE").body
          == "null"
      )
      #expect(try await service.value("") == "null")
    }
  }

  @Test("Namespaces are apart from each other")
  func namespaces() async throws {
    try await ServiceFixture.with { service in
      _ = try await service.send(.put, "/a.json?ns=one", "1")
      _ = try await service.send(.put, "/a.json", "2")
      #expect(try await service.send(.get, "/a.json?ns=one").body == "1")
      #expect(try await service.send(.get, "/a.json?ns=two").body == "null")
      #expect(try await service.send(.get, "/a.json?ns=fake-server").body == "2")
      let list = try await service.send(.get, "/.inspect/databases.json?ns=one").body
      #expect(list.contains(#"{"name":"one"}"#) && list.contains(#"{"name":"fake-server"}"#))
      #expect(try await service.send(.get, "/a.json?ns=a/b").status == 400)
    }
  }

  @Test("Parameters change the form of the answer")
  func forms() async throws {
    try await ServiceFixture.with { service in
      let text = #"{"0":"x","2":"y",".priority":3}"#
      _ = try await service.send(.put, "/a.json?ns=test", text)
      #expect(try await service.send(.get, "/a.json?ns=test").body == #"["x",null,"y"]"#)
      #expect(
        try await service.send(.get, "/a.json?ns=test&format=export").body
          == #"{".priority":3,"0":"x","2":"y"}"#
      )
      #expect(try await service.send(.get, "/a/.priority.json?ns=test").body == "3")
      #expect(
        try await service.send(.get, "/a.json?ns=test&print=pretty").body
          == #"[ "x", null, "y" ]"#
      )
      let silent = try await service.send(.put, "/b.json?ns=test&print=silent", "1")
      #expect(silent.status == 204)
      #expect(silent.body == "")
      let script = try await service.send(.get, "/b.json?ns=test&callback=f.g")
      #expect(script.body == "f.g(1);")
      #expect(script.headers[.contentType] == "application/javascript; charset=utf-8")
      let download = try await service.send(.get, "/b.json?ns=test&download=a%22%0D%0Ab.json")
      #expect(download.headers[.contentDisposition] == #"attachment; filename="ab.json""#)
      #expect(try await service.send(.get, "/b.json?ns=test&timeout=10s").body == "1")
    }
  }

  @Test("A shallow read has the keys only, and pages as tools ask for them")
  func shallow() async throws {
    try await ServiceFixture.with { service in
      _ = try await service.send(.put, "/a.json?ns=test", #"{"x":{"y":1},"z":2,"10":3,"9":4}"#)
      func read(_ rest: String) async throws -> String {
        try await service.send(.get, "\(rest)").body
      }
      #expect(
        try await read("/a.json?ns=test&shallow=true") == #"{"9":true,"10":true,"x":true,"z":true}"#
      )
      #expect(
        try await read("/a.json?ns=test&shallow=true&limitToFirst=2&startAfter=9")
          == #"{"10":true,"x":true}"#
      )
      #expect(try await read("/a/z.json?ns=test&shallow=true") == "2")
      #expect(try await read("/q.json?ns=test&shallow=true") == "null")
    }
  }

  @Test("Queries select, and a list stays one")
  func queries() async throws {
    try await ServiceFixture.with { service in
      let scores = #"{"a":{"s":3},"b":{"s":1},"c":{"s":2},"d":{"t":1}}"#
      _ = try await service.send(.put, "/q.json?ns=test", scores)
      #expect(
        try await service.send(.get, #"/q.json?ns=test&orderBy=%22$key%22&limitToFirst=2"#).body
          == #"{"a":{"s":3},"b":{"s":1}}"#
      )
      #expect(
        try await service.send(.get, #"/q.json?ns=test&orderBy="$key"&startAfter="b""#).body
          == #"{"c":{"s":2},"d":{"t":1}}"#
      )
      let unordered = try await service.send(.get, "/q.json?ns=test&limitToFirst=2")
      #expect(unordered.status == 400)
      #expect(
        unordered.body == """
          {
            "error" : "orderBy must be defined when other query parameters are defined"
          }

          """
      )
    }
  }

  @Test("Conditional requests see and expect the tag of the value")
  func conditions() async throws {
    try await ServiceFixture.with { service in
      let path = "/n.json?ns=test"
      let missing = try await service.send(.get, path, "", Self.tagHeader)
      #expect(missing.headers[.eTag] == "null_etag")
      var headers = Self.tagHeader
      headers[.ifMatch] = "null_etag"
      let put = try await service.send(.put, path, "1", headers)
      let tag = try #require(put.headers[.eTag])
      #expect(put.status == 200)
      #expect(try await service.send(.get, path, "", Self.tagHeader).headers[.eTag] == tag)

      let stale = try await service.send(.put, path, "2", headers)
      #expect(stale.status == 412)
      #expect(stale.body == "1")
      #expect(stale.headers[.eTag] == tag)
      #expect(try await service.send(.delete, path, "", headers).status == 412)

      headers[.ifMatch] = nil
      headers[.ifNoneMatch] = tag
      let same = try await service.send(.get, path, "", headers)
      #expect(same.status == 304)
      #expect(same.body == "")
      let changed = try await service.send(.get, path, "", [.ifNoneMatch: "other"])
      #expect(changed.status == 200)
      #expect(changed.headers[.eTag] == tag)
      headers[.ifNoneMatch] = nil
      headers[.ifMatch] = tag
      let deleted = try await service.send(.delete, path, "", headers)
      #expect(deleted.status == 200)
      #expect(deleted.headers[.eTag] == "null_etag")
    }
  }

  @Test("Server values are resolved, and the answer has what was written")
  func serverValues() async throws {
    try await ServiceFixture.with { service in
      let put = try await service.send(.put, "/t.json?ns=test", #"{".sv":"timestamp"}"#)
      #expect(put.body == "1700000000000")
      let patch = try await service.send(
        .patch,
        "/.json?ns=test",
        #"{"t":{".sv":{"increment":1}},"u/v":1}"#
      )
      #expect(patch.body == #"{"t":1700000000001,"u/v":1}"#)
    }
  }

  @Test(
    "Bad requests get production's answer",
    arguments: [
      (HTTPRequest.Method.get, "/a%2Fb.json", "", 400, "Invalid path: Invalid token in path"),
      (.get, "/a.b.json", "", 400, "Invalid path: Invalid token in path"),
      (.put, "/.info/x.json", "1", 400, "Invalid path: Invalid token in path"),
      (.get, "/a", "", 404, "append .json to your request URI to use the REST API"),
      (.put, "/a.json", "", 400, "Error: No data supplied."),
      (.put, "/a.json", "{", 400, "Invalid data; couldn't parse JSON object, array, or value."),
      (.put, "/a.json", "1e999", 400, "Invalid data; couldn't parse JSON object, array, or value."),
      (
        .patch, "/a.json", "[1]", 400,
        "Invalid data; couldn't parse JSON object. "
          + "Are you sending a JSON object with valid key names?"
      ),
      (
        .put, "/a.json", #"{"a.b":1}"#, 400,
        "Invalid data; couldn't parse key beginning at 1:2. "
          + "Key value can't be empty or contain $ # [ ] / or ."
      ),
      (
        .patch, "/a.json", #"{"b":1, "":2}"#, 400,
        "Invalid data; couldn't parse key beginning at 1:9. "
          + "Key value can't be empty or contain $ # [ ] / or ."
      ),
      (.trace, "/a.json", "", 405, "The method TRACE is not supported"),
      (.get, "/.ws", "", 400, "Expected a WebSocket handshake"),
      (
        .put, "/.settings/functionTriggers.json", "1", 400,
        "Invalid data; couldn't parse JSON object, array, or value."
      ),
    ]
  )
  func badRequests(
    method: HTTPRequest.Method,
    target: String,
    body: String,
    status: Int,
    message: String
  ) async throws {
    try await ServiceFixture.with { service in
      let reply = try await service.send(method, target, body)
      #expect(reply.status == status)
      #expect(reply.body == "{\n  \"error\" : \"\(message)\"\n}\n")
    }
  }

  @Test("An update with overlapping paths writes nothing")
  func overlap() async throws {
    try await ServiceFixture.with { service in
      let reply = try await service.send(.patch, "/a.json?ns=test", #"{"b":1,"b/c":2}"#)
      #expect(reply.status == 400)
      #expect(try await service.value("a") == "null")
    }
  }

  @Test("Credentials that cannot be read are refused, and settings are the administrator's")
  func credentials() async throws {
    try await ServiceFixture.with { service in
      for headers: HTTPFields in [[.authorization: "Bearer x.y"], [.authorization: "Basic x"]] {
        let reply = try await service.send(.get, "/a.json", "", headers)
        #expect(reply.status == 401)
        #expect(reply.body.contains("Could not parse auth token."))
      }
      #expect(try await service.send(.get, "/a.json?auth=x", "", [:]).status == 401)
      #expect(try await service.send(.get, "/a.json?access_token=owner", "", [:]).status == 200)
      for path in ["/.settings/rules.json", "/.inspect/databases.json"] {
        let reply = try await service.send(.get, path, "", [:])
        #expect(reply.status == 401)
        #expect(reply.body.contains("Permission denied"))
      }
      let override = "/a.json?auth_variable_override"
      #expect(try await service.send(.get, "\(override)=null", "", [:]).status == 401)
      #expect(try await service.send(.get, "\(override)=%7B%22uid%22:1%7D").status == 200)
      #expect(try await service.send(.get, "\(override)=1").status == 400)
    }
  }

  @Test("Rules are given and read with their comments")
  func rules() async throws {
    try await ServiceFixture.with { service in
      let path = "/.settings/rules.json?ns=test"
      let text = "{\"rules\": {\n  // open\n  \".read\": true\n}}"
      #expect(try await service.send(.put, path, text).body == #"{"status":"ok"}"#)
      #expect(try await service.send(.get, path).body == text)
      let strict = try await service.send(.get, "\(path)&format=strict").body
      #expect(strict.contains("open") == false)
      #expect(try await service.send(.put, "\(path)&dryRun=true", #"{"rules":{}}"#).status == 200)
      #expect(try await service.send(.get, path).body == text)
      let bad = try await service.send(.put, path, "{}")
      #expect(bad.status == 400)
      #expect(bad.body == "{\n  \"error\" : \"1:2: Expected 'rules' property.\\n\"\n}\n")
      #expect(try await service.send(.get, path).body == text)
    }
  }

  @Test("Rules decide about everybody but the administrator, who may act as somebody")
  func permissions() async throws {
    try await ServiceFixture.with { service in
      try await service.setRules(
        #"{"rules":{"users":{"$u":{".read":"auth.uid === $u",".write":"auth.uid === $u"}}}}"#
      )
      let denied = "{\n  \"error\" : \"Permission denied\"\n}\n"
      for (method, body) in [
        (HTTPRequest.Method.get, ""), (.put, "1"), (.patch, #"{"a":1}"#), (.post, "1"),
        (.delete, ""),
      ] {
        let reply = try await service.send(method, "/users/u.json?ns=test", body, [:])
        #expect(reply.status == 401)
        #expect(reply.body == denied)
      }
      let path = "/users/u.json?ns=test"
      #expect(try await service.send(.put, path, "1").status == 200)
      let user: HTTPFields = [.authorization: "Bearer \(ServiceFixture.token)"]
      #expect(try await service.send(.get, path, "", user).body == "1")
      #expect(try await service.send(.get, "/users/x.json?ns=test", "", user).status == 401)
      let override = "\(path)&auth_variable_override"
      #expect(try await service.send(.get, "\(override)=%7B%22uid%22:%22u%22%7D").body == "1")
      #expect(try await service.send(.get, "\(override)=%7B%22uid%22:%22x%22%7D").status == 401)
      #expect(try await service.send(.get, "\(override)=null").status == 401)
      // A refused condition does not tell the value to those who may not read it.
      var match: HTTPFields = [.ifMatch: "x"]
      #expect(try await service.send(.put, path, "2", match).status == 401)
      match[.authorization] = user[.authorization]
      #expect(try await service.send(.put, path, "2", match).status == 412)
    }
  }

  @Test("A query without an index is refused, with what the rules need")
  func missingIndex() async throws {
    try await ServiceFixture.with { service in
      try await service.setRules(#"{"rules":{".read":true,"b":{".indexOn":"s"}}}"#)
      let target = #"orderBy="s"&limitToFirst=1&ns=test"#
      let reply = try await service.send(.get, "/a.json?\(target)", "", [:])
      #expect(reply.status == 400)
      #expect(
        reply.body.contains(
          #"Index not defined, add \".indexOn\": \"s\", for path \"/a\", to the rules"#
        )
      )
      #expect(try await service.send(.get, "/b.json?\(target)", "", [:]).status == 200)
      let stream = try await service.send(
        .get,
        "/a.json?\(target)",
        "",
        [.accept: "text/event-stream"]
      )
      #expect(stream.status == 400)
    }
  }

  @Test("Triggers of tools are kept as they were given")
  func functionTriggers() async throws {
    try await ServiceFixture.with { service in
      let path = "/.settings/functionTriggers.json"
      let first = try await service.send(.post, path, #"{"name":"a"}"#)
      #expect(first.body == #"{"status":"ok"}"#)
      #expect(try await service.send(.post, path, #"{"name":"b"}"#).status == 200)
      #expect(try await service.send(.get, path).body == #"[{"name":"a"},{"name":"b"}]"#)
      #expect(try await service.send(.put, path, #"[{"name":"c"}]"#).status == 200)
      #expect(try await service.send(.get, path).body == #"[{"name":"c"}]"#)
    }
  }

  @Test("Pages of other origins may use the API, and read the tag")
  func otherOrigins() async throws {
    try await ServiceFixture.with { service in
      let preflight = try await service.send(
        .options,
        "/a.json",
        "",
        [.origin: "http://localhost:3000", .accessControlRequestHeaders: "x-firebase-etag"]
      )
      #expect(preflight.status == 200)
      #expect(preflight.headers[.accessControlAllowOrigin] == "http://localhost:3000")
      #expect(preflight.headers[.accessControlAllowMethods] == "GET,PUT,POST,PATCH,DELETE")
      #expect(preflight.headers[.accessControlAllowHeaders] == "x-firebase-etag")
      let get = try await service.send(.get, "/a.json?auth=x", "", [.origin: "http://localhost:1"])
      #expect(get.status == 401)
      #expect(get.headers[.accessControlAllowOrigin] == "http://localhost:1")
      #expect(get.headers[.accessControlExposeHeaders] == "ETag")
    }
  }
}
