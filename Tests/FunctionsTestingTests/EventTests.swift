import FunctionsTesting
import Testing

@Suite("Events of other services, and events made by hand")
struct EventTests {
  struct Order: Codable, Sendable, Equatable {
    var total: Int64
    var placed: Timestamp?
  }

  struct User: Codable, Sendable, Equatable {
    var name: String
  }

  private var ordered: OnCloudEvent<Order> {
    .init(
      "ordered",
      type: "com.example.order.v1.placed",
      filters: ["shop": "berlin"],
      pathPatterns: ["subject": "orders/{orderId}"]
    ) { event in
      let id = try event.params.orderId
      event.logger.info("\(id): \(event.data.total)")
    }
  }

  private func publish(
    _ suite: FunctionsSuite,
    _ type: String = "com.example.order.v1.placed",
    shop: String = "berlin",
    subject: String = "orders/o1"
  ) async throws {
    try await suite.publish(
      type: type,
      subject: subject,
      attributes: ["shop": shop],
      data: Order(total: 1 << 60)
    )
  }

  @Test("A published event reaches the functions that it fits, and no others")
  func published() async throws {
    let image = OnCloudEvent<[UInt8]>("image", type: "com.example.image.v1.drawn") { event in
      event.logger.info("\(event.data) \(event.dataContentType ?? "")")
    }
    try await withFunctions(ordered, image) { suite in
      try await suite.expectRuns([ordered: 1]) {
        try await publish(suite)
        try await publish(suite, shop: "paris")
        try await publish(suite, subject: "returns/o1")
        try await publish(suite, "com.example.order.v1.paid")
      }
      #expect(suite.logs.map(\.message) == ["o1: \(1 << 60)"])
      try await suite.expectRuns([image: 1]) {
        try await suite.publish(
          type: "com.example.image.v1.drawn",
          contentType: "image/x-dots",
          bytes: [1, 2]
        )
      }
      #expect(suite.logs(of: image).map(\.message) == ["[1, 2] image/x-dots"])
      let delivery = try #require(try await suite.deliveries(of: ordered).first)
      #expect(delivery.document == "orders/o1" && delivery.kind == "com.example.order.v1.placed")
    }
  }

  // MARK: Events through the protocol

  @Test("A document event made by hand reaches its function decoded, and nothing is written")
  func deliversDocuments() async throws {
    let created = OnDocumentCreated<User>("created", at: "users/{id}") { event in
      let id = try event.params.id
      event.logger.info("\(id) \(event.data.name) \(event.id) \(event.attempt)")
    }
    let updated = OnDocumentUpdated<User>("updated", at: "users/{id}") { event in
      event.logger.info("\(event.data.before.name) \(event.data.after.name)")
      event.logger.info("\(event.data.changedFields)")
    }
    let written = OnDocumentWritten<FirestoreDocument>("written", at: "users/{id}") { event in
      event.logger.info("\(event.data.before?.fields["name"] ?? .null)")
    }
    try await withFunctions(created, updated, written) { suite in
      let first = User(name: "Tina")
      let run = try await suite.deliver(
        DocumentEvent(path: "users/t", data: first, id: "my 1%", attempt: 3),
        to: created
      )
      #expect(run.outcome == .succeeded && run.attempt == 3)
      #expect(suite.logs(of: created).map(\.message) == ["t Tina my 1% 3"])

      let update = DocumentUpdate(before: first, after: User(name: "Tom"))
      try await suite.deliver(DocumentEvent(path: "users/t", data: update), to: updated)
      #expect(suite.logs(of: updated).map(\.message) == ["Tina Tom", "[name]"])

      let change = DocumentWrite<User>.deleted(first)
      try await suite.deliver(DocumentEvent(path: "users/t", data: change), to: written)
      #expect(suite.logs(of: written).map(\.message) == ["\(FirestoreValue.string("Tina"))"])
      #expect(try await suite.firestore.document("users/t").get().exists == false)
      #expect(try await suite.deliveries().isEmpty)
    }
  }

  struct Presence: Codable, Sendable, Equatable {
    var online: Bool
    var devices: [String]?
  }

  struct PresencePath: DocumentPath {
    var uid = ""
    static let pattern: Pattern = "presence/\(\.uid)"
  }

  @Test("A value's event made by hand reaches its function decoded, with its params and caller")
  func deliversValues() async throws {
    let created = OnValueCreated<Presence>("created", at: "presence/{uid}") { event in
      let uid = try event.params.uid
      event.logger.info("\(uid) \(event.data) \(event.authType) \(event.authID ?? "")")
    }
    let updated = OnValueUpdated<Presence>("updated", path: PresencePath.self) { event, path in
      event.logger.info("\(path.uid) \(event.data.before.online) \(event.data.after.online)")
    }
    let written = OnValueWritten<Presence>("written", at: "presence/{uid}", instance: "my-*") {
      event in
      event.logger.info("\(event.instance) \(event.data.before == nil) \(event.data.after == nil)")
    }
    try await withFunctions(created, updated, written) { suite in
      let first = Presence(online: true, devices: ["a", "b"])
      let event = ValueEvent(path: "presence/t", data: first, authType: .appUser, authID: "t")
      #expect(try await suite.deliver(event, to: created).outcome == .succeeded)
      #expect(suite.logs(of: created).map(\.message) == ["t \(first) appUser t"])

      let update = ValueUpdate(before: first, after: Presence(online: false))
      try await suite.deliver(ValueEvent(path: "presence/t", data: update), to: updated)
      #expect(suite.logs(of: updated).map(\.message) == ["t true false"])

      let write = ValueWrite(before: first, after: nil)
      try await suite.deliver(
        ValueEvent(path: "presence/t", data: write, instance: "my-db"),
        to: written
      )
      #expect(suite.logs(of: written).map(\.message) == ["my-db false true"])
      let elsewhere = ValueEvent(path: "presence/t", data: write)
      guard case .failed(let reason) = try await suite.deliver(elsewhere, to: written).outcome
      else {
        Issue.record("an event of another instance was taken")
        return
      }
      #expect(reason.contains("does not match the pattern"))
      await #expect(throws: FunctionsTestingError.self) {
        try await suite.deliver(DocumentEvent(path: "presence/t", data: first), to: created)
      }
    }
  }

  @Test("An event that its function does not want is refused, as in production")
  func refused() async throws {
    let created = OnDocumentCreated<User>("created", at: "users/{id}") { _ in }
    try await withFunctions(created) { suite in
      let elsewhere = DocumentEvent(path: "chats/c1", data: User(name: "Tina"))
      guard case .failed(let path) = try await suite.deliver(elsewhere, to: created).outcome
      else {
        Issue.record("an event of another path was taken")
        return
      }
      #expect(path.contains("does not match the pattern"))
      let other = DocumentEvent(path: "users/t", data: ["title": "Tina"])
      guard case .failed(let decoding) = try await suite.deliver(other, to: created).outcome
      else {
        Issue.record("a document of another form was taken")
        return
      }
      #expect(decoding.contains("does not decode as User"))
    }
  }

  @Test("What cannot be sent is reported before the function runs")
  func invalid() async throws {
    let updated = OnDocumentUpdated<FirestoreDocument>("updated", at: "users/{id}") { _ in }
    let stranger = OnDocumentCreated<User>("nobody", at: "users/{id}") { _ in }
    try await withFunctions(updated, ordered) { suite in
      struct Plain: Sendable {}
      let cases: [(FunctionsTestingError.Kind, () async throws -> Void)] = [
        (.invalidEvent, { try await suite.deliver(event(User(name: "T")), to: updated) }),
        (
          .invalidEvent,
          { try await suite.deliver(event(DocumentWrite.created(Plain())), to: updated) }
        ),
        (.noSuchFunction, { try await suite.deliver(event(User(name: "T")), to: ordered) }),
        (.noSuchFunction, { try await suite.deliver(event(User(name: "T")), to: stranger) }),
      ]
      for (kind, deed) in cases {
        let error = await #expect(throws: FunctionsTestingError.self) { try await deed() }
        #expect(error?.kind == kind)
      }
      #expect(suite.runs.isEmpty)
    }
  }

  private func event<Payload: Sendable>(_ data: Payload) -> DocumentEvent<Payload> {
    DocumentEvent(path: "users/t", data: data)
  }

  @Test("Causes, other services' events, scheduled runs, tasks and requests go the same way")
  func deliversOthers() async throws {
    let audited = OnDocumentCreated<FirestoreDocument>(
      "audited",
      at: "users/{id}",
      withAuthContext: true
    ) { event in
      let auth = try #require(event.auth)
      event.logger.info("\(auth.type) \(auth.id ?? "")")
    }
    let nightly = OnSchedule("nightly", schedule: "0 3 * * *") { event in
      event.logger.info("\(event.scheduleTime) \(event.jobName ?? "") \(event.attempt)")
    }
    let work = OnTaskDispatched<Order>("work") { task in
      task.logger.info("\(task.data.total) \(task.taskName) \(task.retryCount)")
      task.logger.info("\(task.previousResponse ?? 0) \(task.retryReason ?? "")")
    }
    let web = OnRequest("web") { request in
      let body = try await request.body.collect(upTo: 10)
      return .text("\(request.path) \(request.query("q") ?? "") \(body.count)", status: .accepted)
    }
    try await withFunctions(audited, ordered, nightly, work, web) { suite in
      let time = try #require(Timestamp("2026-02-03T03:00:00Z"))
      for auth in [EventAuth(.unknown, id: "tina"), EventAuth(.unauthenticated)] {
        let created = DocumentEvent(path: "users/t", data: User(name: "T"), auth: auth)
        try await suite.deliver(created, to: audited)
      }
      #expect(suite.logs(of: audited).map(\.message) == ["unknown tina", "unauthenticated "])

      let order = CloudEventMessage(
        type: "com.example.order.v1.placed",
        data: Order(total: 7, placed: time),
        subject: "orders/o2",
        attributes: ["shop": "berlin"]
      )
      try await suite.deliver(order, to: ordered)
      #expect(suite.logs(of: ordered).map(\.message) == ["o2: 7"])

      let event = ScheduleEvent(scheduleTime: time, jobName: "job", attempt: 2)
      try await suite.deliver(event, to: nightly)
      #expect(suite.logs(of: nightly).map(\.message) == ["\(time) job 2"])

      let task = TaskRequest(
        data: Order(total: 1 << 60),
        taskName: "t1",
        retryCount: 2,
        previousResponse: 503,
        retryReason: "busy"
      )
      try await suite.deliver(task, to: work)
      #expect(suite.logs(of: work).map(\.message) == ["\(1 << 60) t1 2", "503 busy"])

      let request = HTTPFunctionRequest(.post, "/a/b?q=1", body: HTTPRequestBody([1, 2, 3]))
      let response = try await suite.send(request, to: web)
      #expect(response.status == .accepted)
      guard case .bytes(let bytes) = response.body else { return }
      #expect(String(decoding: bytes, as: UTF8.self) == "/a/b 1 3")
    }
  }

  // MARK: Direct calls

  @Test("Every kind of declaration is called with an event made by hand")
  func direct() async throws {
    let seen = Seen()
    let created = OnDocumentCreated<User>("a", at: "users/{id}", withAuthContext: true) { event in
      seen.add("\(try event.params.id) \(event.data.name) \(event.auth?.id ?? "")")
    }
    let auth = EventAuth(.unknown, id: "tina")
    try await created.run(DocumentEvent(path: "users/t", data: User(name: "Tina"), auth: auth))
    let written = OnDocumentWritten<User>("b", at: "users/{id}") { event in
      seen.add("\(try event.params.id) \(event.data.after?.name ?? "")")
    }
    try await written.run(DocumentEvent(path: "users/u", data: .created(User(name: "Uli"))))
    try await ordered.run(
      CloudEventMessage(
        type: "com.example.order.v1.placed",
        data: Order(total: 3),
        subject: "orders/o1",
        attributes: ["shop": "berlin"]
      )
    )
    let nightly = OnSchedule("c", schedule: "0 3 * * *") {
      seen.add("\($0.scheduleTime.microseconds)")
    }
    try await nightly.run(ScheduleEvent(scheduleTime: Timestamp(microseconds: 5)))
    let work = OnTaskDispatched<Order>("d") { seen.add("\($0.data.total) \($0.attempt)") }
    try await work.run(TaskRequest(data: Order(total: 4), retryCount: 1))
    let spell = OnStreamingCall<String, _, String>("e") { request, stream in
      for letter in request.data { try await stream.send(String(letter)) }
      return request.data.count
    }
    let chunks = ChunkCollector<String>()
    #expect(try await spell.run(CallableRequest(data: "ab"), stream: chunks.stream) == 2)
    #expect(chunks.all == ["a", "b"])
    let web = OnRequest("f") { .text("\($0.method) \($0.path)") }
    #expect(try await web.run(HTTPFunctionRequest(.put, "/x")).status == .ok)
    let typed = OnTyped<Order, _>("g") { $0.data.total + 1 }
    #expect(try await typed.run(TypedRequest(data: Order(total: 1))) == 2)

    #expect(seen.all == ["t Tina tina", "u Uli", "5", "4 2"])
  }

  @Test("A direct call with an event of another pattern is refused for good")
  func directRefused() async throws {
    let created = OnDocumentCreated<User>("a", at: "users/{id}") { _ in }
    await #expect(throws: EventError.self) {
      try await created.run(DocumentEvent(path: "chats/c", data: User(name: "T")))
    }
    await #expect(throws: EventError.self) {
      try await ordered.run(CloudEventMessage(type: "other", data: Order(total: 3)))
    }
  }
}
