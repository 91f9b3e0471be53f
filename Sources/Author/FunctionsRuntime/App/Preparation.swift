/// Work that a process does once before it serves the functions that need it.
package final class Preparation: Sendable {
  let body: @Sendable () async throws -> Void

  init(_ body: @escaping @Sendable () async throws -> Void) {
    self.body = body
  }
}

extension CloudFunction {
  /// Returns the function with work that a process does before serving it.
  ///
  /// ```swift
  /// FunctionsApp {
  ///   greeting
  ///   search.prepared { try await index.check() }
  /// }
  /// ```
  ///
  /// `body`, for example the check of an index, runs once per process, and only in a process that
  /// serves the function. It does not run when a manifest is requested, nor in a worker that serves
  /// other functions. If it throws, the process prints the error on standard error and ends with
  /// status 1. `withFunctions` runs it before the test.
  public func prepared(
    by body: @escaping @Sendable () async throws -> Void
  ) -> FunctionDefinition {
    definition.prepared(by: body)
  }
}

extension FunctionDefinition {
  /// Returns the function with additional work that a process does before serving it.
  ///
  /// See `CloudFunction.prepared(by:)` for when the work runs and what happens if it throws.
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
  /// Returns the functions with work that a process does once before serving any of them.
  ///
  /// See `CloudFunction.prepared(by:)` for when the work runs and what happens if it throws.
  public func prepared(by body: @escaping @Sendable () async throws -> Void) -> Self {
    let preparation = Preparation(body)
    return map { $0.prepared(by: preparation) }
  }
}
