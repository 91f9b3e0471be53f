/// Transforms a series of inputs in parallel, and passes the outputs on in the order of the inputs.
///
/// `next` returns the inputs and then nil. While `body` has an output, at most `width` more inputs
/// are transformed. `next` and `body` never run at the same time. An error of an input or of its
/// transformation is thrown after `body` has had all outputs before it. Throws `CancellationError`
/// in a cancelled task.
package func forEachMapped<Input: Sendable, Output: Sendable>(
  _ next: () throws -> Input?,
  width: Int,
  by transform: @escaping @Sendable (Input) throws -> Output,
  isolation: isolated (any Actor)? = #isolation,
  _ body: (Output) async throws -> Void
) async throws {
  try await withThrowingTaskGroup(of: (Int, Result<Output, any Error>).self) { group in
    var results: [Int: Result<Output, any Error>] = [:]
    var (begun, passed) = (0, 0)
    var isAtEnd = false
    while true {
      try Task.checkCancellation()
      // One more than `width`, because the output that `body` gets next needs no processor.
      while !isAtEnd, begun - passed <= width {
        do {
          guard let input = try next() else {
            isAtEnd = true
            break
          }
          group.addTask { [begun] in (begun, Result { try transform(input) }) }
        } catch {
          results[begun] = .failure(error)
          isAtEnd = true
        }
        begun += 1
      }
      while results[passed] == nil, let (number, result) = try await group.next() {
        results[number] = result
      }
      guard let result = results.removeValue(forKey: passed) else { return }
      passed += 1
      try await body(result.get())
    }
  }
}
