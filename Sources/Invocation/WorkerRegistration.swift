/// What a worker that somebody has started in a debugger tells the hub of itself.
///
/// `POST /hearth/v1/workers` with it is answered with lines; see `WorkerLine`.
package struct WorkerRegistration: Codable, Sendable {
  package var pid: Int32
  /// Where it listens on its machine, which is the hub's, too.
  package var port: Int
  /// The only function that it runs; nil for all.
  package var target: String?
  package var manifest: FunctionManifest

  /// A registration of a process that listens.
  package init(pid: Int32, port: Int, target: String?, manifest: FunctionManifest) {
    self.pid = pid
    self.port = port
    self.target = target
    self.manifest = manifest
  }
}

/// A line of the hub's answer to a registration, which holds for as long as the answer is open.
///
/// The first says which functions the worker runs from now on; more come so that the connection is
/// not silent for too long.
package struct WorkerLine: Codable, Sendable, Equatable {
  /// By this the worker can be released: `DELETE /hearth/v1/workers/ID`.
  package var id: String
  package var functions: [String]

  /// A line about a worker.
  package init(id: String, functions: [String]) {
    self.id = id
    self.functions = functions
  }
}
