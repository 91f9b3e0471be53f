import Synchronization

/// Ends what dead workers have left running, in one pass over the machine's processes for all who
/// ask while the pass before is under way.
actor StraySweep {
  /// The variable by which a worker's processes are known, wherever they have gone.
  static let mark = "HEARTH_SOCKET"

  private nonisolated let asked = Mutex<Set<String>>([])

  /// Returns once all processes that have inherited this socket path are told to end.
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
