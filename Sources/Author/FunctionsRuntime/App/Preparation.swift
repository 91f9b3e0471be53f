/// Work that a process does once before it serves the functions that need it.
package final class Preparation: Sendable {
  let body: @Sendable () async throws -> Void

  init(_ body: @escaping @Sendable () async throws -> Void) {
    self.body = body
  }
}

extension CloudFunction {
  /// The function with work that a process does before serving it, such as checking an index.
  ///
  /// ```swift
  /// FunctionsApp {
  ///   greeting
  ///   search.prepared { try await index.check() }
  /// }
  /// ```
  ///
  /// `body` runs once per process, and only in a process that serves the function: not when a
  /// manifest is asked for, nor in a worker of other functions. A process in which it throws ends
  /// with status 1 and the error on standard error. `withFunctions` runs it before the test.
  public func prepared(
    by body: @escaping @Sendable () async throws -> Void
  ) -> FunctionDefinition {
    definition.prepared(by: body)
  }
}

extension FunctionDefinition {
  /// The function with further work that a process does before it serves it.
  ///
  /// In all else like the form of a declaration.
  public func prepared(
    by body: @escaping @Sendable () async throws -> Void
  ) -> FunctionDefinition {
    prepared(by: Preparation(body))
  }

  fileprivate func prepared(by preparation: Preparation) -> FunctionDefinition {
    var definition = self
    definition.preparations.append(preparation)
    return definition
  }
}

extension [FunctionDefinition] {
  /// The functions with work that a process does once before serving any of them.
  ///
  /// Otherwise like the form of a single function.
  public func prepared(by body: @escaping @Sendable () async throws -> Void) -> Self {
    let preparation = Preparation(body)
    return map { $0.prepared(by: preparation) }
  }
}
