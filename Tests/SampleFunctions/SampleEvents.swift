import FunctionsRuntime
import Synchronization

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// Functions of all kinds other than callables and triggers, as the Functions Framework hosts them.
struct SampleEvents: Sendable {
  let output: SampleOutput
  private let meeting = Meeting()

  init(output: SampleOutput) {
    self.output = output
  }

  @FunctionsBuilder var functions: [FunctionDefinition] {
    writeEvent
    writeBody
    wrapTyped
    meet
    recordCreator
    recordTick
    recordTask
    enqueueTask
  }

  /// Writes the received event in the format of the framework's conformance tests.
  var writeEvent: OnCloudEvent<[UInt8]> {
    .init("writeEvent", type: "*") { event in
      var attributes = event.attributes
      attributes["id"] = event.id
      attributes["source"] = event.source
      attributes["type"] = event.type
      attributes["subject"] = event.subject
      attributes["time"] = event.time?.description
      attributes["datacontenttype"] = event.dataContentType
      attributes["data_base64"] = Data(event.data).base64EncodedString()
      let json = try JSONEncoder().encode(attributes)
      output.append(String(decoding: json, as: UTF8.self))
    }
  }

  /// Writes the received body.
  var writeBody: OnRequest {
    .init("writeBody") { request in
      output.append(String(decoding: try await request.body.collect(upTo: 4096), as: UTF8.self))
      return .text("written")
    }
  }

  /// Returns its data wrapped in an object.
  var wrapTyped: OnTyped<FirestoreValue, MapValue> {
    .init("wrapTyped") { ["payload": $0.data] }
  }

  struct Attendance: Codable, Sendable {
    var people: Int
  }

  /// Returns when as many calls as requested run at once.
  var meet: OnTyped<Attendance, Int> {
    .init("meet") { [meeting] request in
      await meeting.join(of: request.data.people)
    }
  }

  /// Records the author of a document created below `made`.
  var recordCreator: OnDocumentCreated<FirestoreDocument> {
    .init("recordCreator", at: "made/{id}", withAuthContext: true) { event in
      let auth = event.auth
      output.append(
        "recordCreator",
        auth?.type.rawValue ?? "-",
        auth?.id ?? "-",
        try event.params.id
      )
    }
  }

  /// Records its scheduled time.
  var recordTick: OnSchedule {
    .init(
      "recordTick",
      schedule: "0 3 * * *",
      timeZone: "Europe/Berlin",
      options: .init(retry: .init(attempts: 3, minBackOff: .milliseconds(10)))
    ) { event in
      output.append("recordTick", event.scheduleTime.description, String(event.attempt))
    }
  }

  struct Job: Codable, Sendable {
    var text: String
    /// The number of attempts that fail before one succeeds.
    var failures: Int?
  }

  /// Records a task after the number of failures that the task requests.
  var recordTask: OnTaskDispatched<Job> {
    .init(
      "recordTask",
      rateLimits: .init(concurrentDispatches: 4),
      options: .init(retry: .init(attempts: 5, minBackOff: .milliseconds(10)))
    ) { request in
      output.append("recordTask", request.data.text, request.taskName, String(request.attempt))
      guard request.retryCount >= request.data.failures ?? 0 else {
        throw SampleCallables.PlainError(text: "failed as asked")
      }
    }
  }

  struct Order: Codable, Sendable {
    var job: Job
    var id: String?
    var delayMilliseconds: Int?
  }

  /// Enqueues a task for `recordTask` and returns its ID.
  var enqueueTask: OnCall<Order, String> {
    .init("enqueueTask") { request in
      do {
        return try await recordTask.enqueue(
          request.data.job,
          id: request.data.id,
          after: .milliseconds(request.data.delayMilliseconds ?? 0)
        )
      } catch let error as TaskQueueError {
        throw CallableError(error.code, error.message)
      }
    }
  }
}

/// A barrier for calls.
private actor Meeting {
  private var waiting: [CheckedContinuation<Void, Never>] = []

  /// Returns when `people` calls have arrived.
  func join(of people: Int) async -> Int {
    guard waiting.count + 1 >= people else {
      await withCheckedContinuation { waiting.append($0) }
      return people
    }
    let others = waiting
    waiting = []
    for other in others { other.resume() }
    return people
  }
}
