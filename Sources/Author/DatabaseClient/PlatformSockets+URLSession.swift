#if canImport(Darwin)
  import Foundation

  /// WebSockets over `URLSession`.
  struct PlatformSockets: MessageSockets {
    func withSocket(
      _ url: String,
      _ body: @escaping @Sendable (MessageSocket) async throws -> Void
    ) async throws {
      guard let url = URL(string: url) else {
        throw DatabaseError(.invalidArgument, "the address of the database is malformed")
      }
      let task = URLSession.shared.webSocketTask(with: url)
      task.resume()
      defer { task.cancel(with: .normalClosure, reason: nil) }
      do {
        try await withTaskCancellationHandler {
          // The stream asks for one message at a time, so none waits here.
          let messages = AsyncThrowingStream<String, any Error> {
            switch try await task.receive() {
            case .string(let text): text
            case .data(let data): String(decoding: data, as: UTF8.self)
            @unknown default: ""
            }
          }
          try await body(
            MessageSocket(messages: messages) { texts in
              // The session keeps the order in which messages are handed over.
              for text in texts.dropLast() { task.send(.string(text)) { _ in } }
              if let last = texts.last { try await task.send(.string(last)) }
            }
          )
        } onCancel: {
          task.cancel(with: .normalClosure, reason: nil)
        }
      } catch let error as URLError {
        throw DatabaseError.notConnected(error)
      }
    }
  }
#endif
