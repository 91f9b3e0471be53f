import FunctionsRuntime
import LibC

/// Triggers that record their events in a file and fail as their names say.
struct SampleTriggers: Sendable {
  let output: SampleOutput

  struct Thing: Codable, Sendable, Equatable {
    var n: Int
  }

  /// Records every write below `things`.
  var recordWrite: OnDocumentWritten<Thing> {
    .init("recordWrite", at: "things/{thingId}", options: .init(retry: true)) { event in
      let kind =
        switch event.data {
        case .created: "created"
        case .updated: "updated"
        case .deleted: "deleted"
        }
      output.append("recordWrite", kind, try event.params.thingId, event.id)
      event.logger.info("Recorded", metadata: ["event": "\(event.id)"])
    }
  }

  /// Records its start time in nanoseconds of the monotonic clock that all processes share.
  func clockWrite(_ name: String, at collection: String) -> OnDocumentCreated<FirestoreDocument> {
    .init(name, at: "\(collection)/{id}") { event in
      var time = timespec()
      #if canImport(Darwin)
        clock_gettime(CLOCK_UPTIME_RAW, &time)
      #else
        clock_gettime(CLOCK_MONOTONIC, &time)
      #endif
      let began = Int(time.tv_sec) * 1_000_000_000 + Int(time.tv_nsec)
      output.append("clockWrite", String(began), try event.params.id, event.id)
    }
  }

  /// Creates `count` functions that record their start times, each for its own collection.
  @FunctionsBuilder
  func clocks(_ count: Int) -> [FunctionDefinition] {
    for number in 0..<count { clockWrite("clockWrite\(number)", at: "clocked\(number)") }
  }

  /// Creates `count` functions that take a while for each event and end their worker on one event.
  @FunctionsBuilder
  func crowds(_ count: Int) -> [FunctionDefinition] {
    for number in 0..<count { crowd("crowd\(number)", at: "crowd\(number)") }
  }

  private func crowd(
    _ name: String,
    at collection: String
  ) -> OnDocumentCreated<FirestoreDocument> {
    .init(name, at: "\(collection)/{id}") { event in
      let id = try event.params.id
      // Exits without a crash report, which would take seconds.
      if id == "1000025" { _exit(3) }
      try await Task.sleep(for: .milliseconds(500))
      output.append(name, "done", id, event.id)
    }
  }

  /// Crashes its worker on every delivery of every tenth event, and records the others.
  var crashOnTenth: OnDocumentCreated<FirestoreDocument> {
    .init("crashOnTenth", at: "crashOnTenth/{id}") { event in
      let id = try event.params.id
      if Int(id)?.isMultiple(of: 10) == true { fatalError("crashed as asked") }
      output.append("crashOnTenth", "done", id, event.id)
    }
  }

  /// Fails on the first delivery of each event and records later ones.
  var failOnce: OnDocumentCreated<FirestoreDocument> {
    .init("failOnce", at: "failOnce/{id}", options: .init(retry: true)) { event in
      guard output.contains("failOnce", "begun", try event.params.id, event.id) else {
        output.append("failOnce", "begun", try event.params.id, event.id)
        throw EventError.retry(after: .milliseconds(10), "failed as asked")
      }
      output.append("failOnce", "done", try event.params.id, event.id)
    }
  }

  /// Crashes its worker on the first delivery of each event and records later ones.
  var crashOnce: OnDocumentCreated<FirestoreDocument> {
    .init("crashOnce", at: "crashOnce/{id}") { event in
      guard output.contains("crashOnce", "begun", try event.params.id, event.id) else {
        output.append("crashOnce", "begun", try event.params.id, event.id)
        fatalError("crashed as asked")
      }
      output.append("crashOnce", "done", try event.params.id, event.id)
    }
  }

  /// Fails on every delivery with an error that can be retried.
  var failAlways: OnDocumentCreated<FirestoreDocument> {
    .init("failAlways", at: "failAlways/{id}", options: .init(retry: true)) { event in
      output.append("failAlways", "begun", try event.params.id, event.id)
      throw SampleCallables.PlainError(text: "failed as asked")
    }
  }

  /// Fails with a permanent error.
  var failForGood: OnDocumentCreated<FirestoreDocument> {
    .init("failForGood", at: "failForGood/{id}", options: .init(retry: true)) { event in
      output.append("failForGood", "begun", try event.params.id, event.id)
      throw EventError.permanent("failed as asked")
    }
  }

  /// Fails without a retry policy.
  var failWithoutRetry: OnDocumentCreated<FirestoreDocument> {
    .init("failWithoutRetry", at: "failWithoutRetry/{id}") { event in
      output.append("failWithoutRetry", "begun", try event.params.id, event.id)
      throw SampleCallables.PlainError(text: "failed as asked")
    }
  }
}

/// A file that outlives workers, with a line `function step id event` for each record.
struct SampleOutput: Sendable {
  /// The path of the file; nil to record nothing.
  let path: String?

  /// Appends a line atomically, even while other processes write.
  func append(_ words: String...) {
    guard let path else { return }
    let descriptor = open(path, O_WRONLY | O_APPEND | O_CREAT, 0o644)
    guard descriptor >= 0 else { return }
    let line = Array((words.joined(separator: " ") + "\n").utf8)
    _ = write(descriptor, line, line.count)
    close(descriptor)
  }

  /// Indicates whether the file contains the line.
  func contains(_ words: String...) -> Bool {
    guard let path, let file = fopen(path, "r") else { return false }
    defer { fclose(file) }
    let wanted = words.joined(separator: " ")
    var buffer: [CChar] = Array(repeating: 0, count: 4096)
    while fgets(&buffer, CInt(buffer.count), file) != nil {
      let line = buffer.prefix { $0 != 0 && $0 != 10 }.map { UInt8(bitPattern: $0) }
      if String(decoding: line, as: UTF8.self) == wanted { return true }
    }
    return false
  }
}
