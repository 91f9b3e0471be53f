import Synchronization

/// A sweep that ends the processes that exited workers have left running.
///
/// One pass over the machine's processes serves all calls made while the previous pass was running.
actor StraySweep {
  /// The environment variable that identifies a worker's processes, wherever they have moved.
  static let mark = "HEARTH_SOCKET"

  private nonisolated let asked = Mutex<Set<String>>([])

  /// Returns once all processes that inherited this socket path have been signaled to end.
  nonisolated func end(socketPath: String) async {
    asked.withLock { _ = $0.insert(socketPath) }
    await sweep()
  }

  private func sweep() {
    let paths = asked.withLock { asked in
      defer { asked = [] }
      return asked
    }
    guard !paths.isEmpty else { return }
    ProcessFacts.endAll(inheriting: Self.mark, where: paths.contains)
  }
}
