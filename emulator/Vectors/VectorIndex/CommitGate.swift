/// A gate that commits pass, and that is closed while a view is taken.
///
/// A closed gate holds back new commits; it is closed only once those inside have left. The owner
/// protects the value with a lock and resumes the returned continuations outside it.
struct CommitGate {
  typealias Waiting = CheckedContinuation<Void, Never>

  private var inside = 0
  private var isClosed = false
  /// The calls that wait to close the gate, in order.
  private var closing: [Waiting] = []
  /// The commits that wait for the gate to open.
  private var entering: [Waiting] = []

  /// Lets a commit in, at once or once the gate is open again; returns what to resume.
  mutating func enter(_ waiting: Waiting) -> [Waiting] {
    guard !isClosed, closing.isEmpty else {
      entering.append(waiting)
      return []
    }
    inside += 1
    return [waiting]
  }

  /// Notes the end of a commit; returns what to resume.
  mutating func leave() -> [Waiting] {
    inside -= 1
    return closeIfEmpty()
  }

  /// Closes the gate, at once or once it is empty; returns what to resume.
  mutating func close(_ waiting: Waiting) -> [Waiting] {
    closing.append(waiting)
    return closeIfEmpty()
  }

  /// Opens the gate; returns what to resume: the commits, or the next call that waits to close it.
  mutating func open() -> [Waiting] {
    isClosed = false
    guard closing.isEmpty else { return closeIfEmpty() }
    inside += entering.count
    defer { entering = [] }
    return entering
  }

  private mutating func closeIfEmpty() -> [Waiting] {
    guard inside == 0, !isClosed, !closing.isEmpty else { return [] }
    isClosed = true
    return [closing.removeFirst()]
  }
}
