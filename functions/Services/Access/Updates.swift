/// The current value, then a new one after each change, as an asynchronous sequence.
///
/// ```swift
/// for try await clients in contacts.observeClients() { self.clients = clients }
/// ```
///
/// If the connection fails, it resumes by itself. It ends when its task is cancelled or its loop is
/// left. It throws the error of the service from which it comes, for example after the user has
/// lost access.
public struct Updates<Element: Sendable>: AsyncSequence, Sendable {
  private let start: @Sendable () -> AsyncIterator

  /// Creates a sequence of given values, for previews and tests.
  public init(_ elements: [Element]) {
    start = {
      var iterator = elements.makeIterator()
      return AsyncIterator { iterator.next() }
    }
  }

  /// Creates updates from another sequence, whose errors become those of a service.
  init<Base: AsyncSequence & Sendable>(
    _ base: Base,
    errors: any AccessError.Type,
    _ transform: @escaping @Sendable (Base.Element) async throws -> Element
  ) where Base.Element: Sendable {
    self.init(base, errors: errors, transforms: { transform })
  }

  /// Creates updates from another sequence with a new transform for each loop.
  ///
  /// Nothing is shown for elements for which the transform returns nil.
  init<Base: AsyncSequence & Sendable>(
    _ base: Base,
    errors: any AccessError.Type,
    transforms: @escaping @Sendable () -> (Base.Element) async throws -> Element?
  ) where Base.Element: Sendable {
    start = {
      var iterator = base.makeAsyncIterator()
      let transform = transforms()
      return AsyncIterator {
        do {
          while let next = try await iterator.next() {
            if let element = try await transform(next) { return element }
          }
          return nil
        } catch {
          throw try errors.of(error)
        }
      }
    }
  }

  /// Starts to observe.
  public func makeAsyncIterator() -> AsyncIterator { start() }

  /// The iterator of one loop.
  public struct AsyncIterator: AsyncIteratorProtocol {
    private let step: () async throws -> Element?

    fileprivate init(_ step: @escaping () async throws -> Element?) {
      self.step = step
    }

    /// Waits for the next value; returns nil if the task is cancelled.
    public mutating func next() async throws -> Element? { try await step() }
  }
}
