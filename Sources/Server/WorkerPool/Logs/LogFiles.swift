import JSONText
import FlowControl
import FunctionLogs
import LibC
import NIOPosix
import Synchronization

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// A writer that appends log lines as JSON to `functions.jsonl` and rotates the file.
///
/// Older files are `functions.1.jsonl`, `functions.2.jsonl` and so on. Lines wait in a bounded
/// queue and are written by one job at a time, on NIO's threads for blocking calls. A slow, full or
/// failing disk loses log lines but nothing else, and the next line that is written reports how
/// many.
final class LogFiles: Sendable {
  /// The maximum size of the lines that wait to be written, including metadata.
  ///
  /// Beyond it, the oldest waiting lines are missing from the file, but not from memory.
  static let pendingBytesMax = 16 << 20
  /// The size of the lines encoded and written at once; their JSON is in memory as well.
  private static let batchBytesMax = 1 << 20

  private struct State {
    var pending = BoundedQueue<FunctionLogEntry>(bytesMax: LogFiles.pendingBytesMax)
    /// The number of lines that were dropped from the queue or that the disk did not accept.
    var lost = 0
    var isWriting = false
    var flushes: [CheckedContinuation<Void, Never>] = []
    var isClosed = false
    /// Finished once all pending lines are written.
    var closing: AsyncStream<Void>.Continuation?
  }

  private let folder: String
  private let bytesMax: Int
  private let filesMax: Int
  private let state = Mutex(State())

  /// Creates a writer for files in `folder`, which is created with the first line.
  init(folder: String, bytesMax: Int, filesMax: Int) {
    self.folder = folder
    self.bytesMax = bytesMax
    self.filesMax = max(1, filesMax)
  }

  /// Queues a line to be written soon; `bytes` counts toward the bound of the queue.
  func append(_ entry: FunctionLogEntry, bytes: Int) {
    let begins = state.withLock { state in
      guard !state.isClosed else { return false }
      state.pending.append(entry, bytes: bytes)
      defer { state.isWriting = true }
      return !state.isWriting
    }
    if begins { submit() }
  }

  /// Returns once all lines accepted so far have been written.
  func flush() async {
    await withCheckedContinuation { continuation in
      let isIdle = state.withLock { state in
        if !state.isWriting { return true }
        state.flushes.append(continuation)
        return false
      }
      if isIdle { continuation.resume() }
    }
  }

  /// Writes the accepted lines, for at most `timeMax`, and accepts no further ones.
  func end(within timeMax: Duration) async {
    let (idle, signal) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
    let isIdle = state.withLock { state in
      state.isClosed = true
      if state.isWriting { state.closing = signal }
      return !state.isWriting
    }
    guard !isIdle else { return }
    await withTaskGroup(of: Void.self) { group in
      group.addTask { for await _ in idle {} }
      group.addTask {
        // The sleep is cancelled when everything is written.
        try? await Task.sleep(for: timeMax)
      }
      await group.next()
      group.cancelAll()
    }
    state.withLock { $0.pending = BoundedQueue(bytesMax: Self.pendingBytesMax) }
  }

  /// Returns the last `limit` lines of the files, oldest first, limited to `bytesMax` bytes.
  func latest(_ limit: Int, bytesMax: Int, of function: String?) async -> [FunctionLogEntry] {
    await flush()
    let read = try? await NIOThreadPool.singleton.runIfActive {
      self.read(limit, bytesMax: bytesMax, of: function)
    }
    // The pool's threads end only with the process, when no one reads the log anymore.
    return read ?? []
  }

  private func submit() {
    NIOThreadPool.singleton.submit { _ in self.writePending() }
  }

  private func writePending() {
    while true {
      let (batch, flushes) = state.withLock { state in
        let batch = Self.takeBatch(&state)
        var flushes: [CheckedContinuation<Void, Never>] = []
        if batch.entries.isEmpty {
          state.isWriting = false
          swap(&flushes, &state.flushes)
          state.closing?.finish()
        }
        return (batch, flushes)
      }
      for flush in flushes { flush.resume() }
      if batch.entries.isEmpty { return }
      if !write(batch.entries) {
        state.withLock { $0.lost += batch.lost + batch.lines }
      }
    }
  }

  /// The lines that are written in one step.
  private struct Batch {
    /// The lines, preceded by a report if lines were lost.
    var entries: [FunctionLogEntry] = []
    var lines = 0
    var lost = 0
  }

  private static func takeBatch(_ state: inout State) -> Batch {
    var batch = Batch()
    var bytes = 0
    while bytes < batchBytesMax, let item = state.pending.popFirst() {
      switch item {
      case .gap(let count): state.lost += count
      case .element(let entry):
        if state.lost > 0 {
          batch.entries.append(report(of: state.lost, before: entry))
          batch.lost += state.lost
          state.lost = 0
        }
        batch.entries.append(entry)
        batch.lines += 1
        bytes += entry.memoryBytes
      }
    }
    return batch
  }

  private static func report(of lost: Int, before entry: FunctionLogEntry) -> FunctionLogEntry {
    FunctionLogEntry(
      time: entry.time,
      function: entry.function,
      level: "warning",
      message: "\(lost) lines were not kept: the disk was too slow, full or failing."
    )
  }

  /// Appends lines to the current file; returns false if the disk did not accept all of them.
  private func write(_ entries: [FunctionLogEntry]) -> Bool {
    var bytes: [UInt8] = []
    for entry in entries {
      // Encoding strings and dictionaries of strings never fails.
      guard let line = try? entry.jsonBytes() else { continue }
      // Control characters are escaped, so that the file is safe to print in a terminal.
      bytes += Array(ControlCharacters.escapedJSON(String(decoding: line, as: UTF8.self)).utf8)
      bytes.append(0x0A)
    }
    var descriptor = openCurrent()
    if descriptor < 0 {
      // The folder is missing before the first line of the first run. Any error shows in the next
      // open.
      try? FileManager.default.createDirectory(
        atPath: folder,
        withIntermediateDirectories: true
      )
      descriptor = openCurrent()
    }
    guard descriptor >= 0 else { return false }
    let size = lseek(descriptor, 0, SEEK_END)
    let isWritten = bytes.withUnsafeBytes { buffer in
      var rest = buffer[...]
      while !rest.isEmpty {
        let written = platformWrite(descriptor, UnsafeRawBufferPointer(rebasing: rest))
        if written <= 0 { return false }
        rest = rest.dropFirst(written)
      }
      return true
    }
    // A partial line would corrupt the line after it; if truncation fails, it stays.
    if !isWritten { _ = ftruncate(descriptor, size) }
    close(descriptor)
    if isWritten, Int(size) + bytes.count > bytesMax { rotate() }
    return isWritten
  }

  private func openCurrent() -> Int32 {
    open(path(0), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0o600)
  }

  private func rotate() {
    unlink(path(filesMax - 1))
    for index in (0..<filesMax - 1).reversed() { rename(path(index), path(index + 1)) }
  }

  private func path(_ index: Int) -> String {
    index == 0 ? "\(folder)/functions.jsonl" : "\(folder)/functions.\(index).jsonl"
  }

  private func read(_ limit: Int, bytesMax: Int, of function: String?) -> [FunctionLogEntry] {
    var newestFirst: [FunctionLogEntry] = []
    var bytes = 0
    var isFull: Bool { newestFirst.count >= limit || bytes > bytesMax }
    for index in 0..<filesMax where !isFull {
      guard let content = FileManager.default.contents(atPath: path(index)) else { break }
      for line in content.split(separator: 0x0A).reversed() where !isFull {
        // Skip a line that a crash has truncated.
        guard let entry = try? FunctionLogEntry(decodingJSON: line) else { continue }
        guard function == nil || entry.function == function else { continue }
        bytes += entry.memoryBytes
        if bytes <= bytesMax { newestFirst.append(entry) }
      }
    }
    return newestFirst.reversed()
  }
}

private func platformWrite(_ descriptor: Int32, _ buffer: UnsafeRawBufferPointer) -> Int {
  var written: Int
  repeat {
    written = write(descriptor, buffer.baseAddress, buffer.count)
  } while written < 0 && errno == EINTR
  return written
}
