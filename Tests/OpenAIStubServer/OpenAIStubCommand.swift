import ArgumentParser
import Foundation
import HTTPMessages
import HTTPSupport
import HTTPTypes
import Logging
import NIOCore
import OpenAIStub
import ServiceLifecycle
import Synchronization
import UnixSignals

/// The `openai-stub` command: the stub on a local port, for clients in any language.
///
/// It prints a line of JSON with the port when it listens. It ends on SIGTERM or at the end of its
/// standard input, so that it never outlives the test that started it.
@main
struct OpenAIStubCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "openai-stub",
    abstract: "Stands in for OpenAI's API; scripted below /stub/."
  )

  /// The maximum body size; the tokens of the largest valid request are about a megabyte of text.
  static let bodyBytesMax = 16 << 20

  @Option(help: "The port on 127.0.0.1; 0 takes a free one.")
  var port = 0

  @Flag(help: "Print the port as JSON, which is also what happens without.")
  var json = false

  @Option(help: ArgumentHelp("The script that the stub begins with.", valueName: "file"))
  var script: String?

  func run() async throws {
    var logger = Logger(label: "openai-stub") { StreamLogHandler.standardError(label: $0) }
    logger.logLevel = .warning
    var state = StubState()
    if let script {
      let json = try Data(contentsOf: URL(filePath: script))
      try state.add(JSONDecoder().decode(StubScript.self, from: json))
    }
    let stub = ServedStub(state)
    let server = HTTPService(
      address: .tcp(host: "127.0.0.1", port: port),
      logger: logger,
      onListening: { address in
        guard case .tcp(_, let port) = address else { return }
        FileHandle.standardOutput.write(Data("{\"port\":\(port)}\n".utf8))
      },
      responder: stub.respond
    )
    // A blocking read needs its own thread, which ends with the process.
    Thread.detachNewThread {
      while !FileHandle.standardInput.availableData.isEmpty {}
      Self.exit()
    }
    let group = ServiceGroup(
      configuration: ServiceGroupConfiguration(
        services: [.init(service: server)],
        gracefulShutdownSignals: [.sigterm, .sigint],
        logger: logger
      )
    )
    try await group.run()
  }
}

/// Sends the stub's responses over connections.
private final class ServedStub: Sendable {
  private let state: Mutex<StubState>

  private struct ConnectionBrokenError: Error {}

  init(_ state: StubState) { self.state = Mutex(state) }

  @Sendable func respond(_ request: Request, _ context: HTTPContext) async throws -> Response {
    let body = try await request.wholeBody(upTo: OpenAIStubCommand.bodyBytesMax)
    let answer = state.withLock {
      $0.answer(
        StubRequest(
          method: request.method.rawValue,
          path: request.path,
          authorization: request.headers[.authorization],
          body: Array(body.readableBytesView)
        )
      )
    }
    if answer.delay > .zero {
      do {
        try await Task.sleep(for: answer.delay)
      } catch {
        state.withLock { $0.clientLeft(answer) }
        throw error
      }
    }
    if answer.ending == .reset {
      try await context.channel.close()
      throw ConnectionBrokenError()
    }
    var headers = HTTPFields()
    for (name, value) in answer.headers {
      if let name = HTTPField.Name(name) { headers[name] = value }
    }
    return Response(
      status: .numbered(answer.status),
      headers: headers,
      body: Self.body(answer, context.channel)
    )
  }

  private static func body(_ answer: StubResponse, _ channel: any Channel) -> Response.Body {
    if answer.ending == .whole, answer.pieces.count == 1 {
      return .whole(ByteBuffer(bytes: answer.pieces[0]))
    }
    return .produced { write in
      for piece in answer.pieces { try await write(ByteBuffer(bytes: piece)) }
      guard answer.ending == .whole else {
        try await channel.close()
        throw ConnectionBrokenError()
      }
    }
  }
}
