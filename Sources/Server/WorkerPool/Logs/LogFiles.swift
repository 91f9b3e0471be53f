import Invocation
import NIOPosix
import Synchronization

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif
#if canImport(Darwin)
  import Darwin
#elseif canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#endif

/// Writes log lines as JSON to `functions.jsonl` in a folder, and begins a new file in time.
///
/// Older files are `functions.1.jsonl`, `functions.2.jsonl` and so on. Lines wait in memory,
/// bounded, and are written by one job at a time on NIO's threads for blocking calls. A failing
/// disk loses lines of the log and nothing else.
final class LogFiles: Sendable {
  /// Lines that may wait to be written; further ones are missing from the file, not from memory.
  static let pendingMax = 50_000
  /// Bytes of messages that may wait to be written.
  static let pendingBytesMax = 16 << 20

  private struct State {
    var pending: [FunctionLogEntry] = []
    var pendingBytes = 0
    var dropped = 0
    var isWriting = false
    var flushes: [CheckedContinuation<Void, Never>] = []
  }

  private let folder: String
  private let bytesMax: Int
  private let filesMax: Int
  private let state = Mutex(State())

  /// Files in `folder`, which is created with the first line.
  init(folder: String, bytesMax: Int, filesMax: Int) {
    self.folder = folder
    self.bytesMax = bytesMax
    self.filesMax = max(1, filesMax)
  }

  /// Takes a line to be written soon.
  func append(_ entry: FunctionLogEntry) {
    let begins = state.withLock { state in
      guard state.pending.count < Self.pendingMax, state.pendingBytes < Self.pendingBytesMax else {
        state.dropped += 1
        return false
      }
      if state.dropped > 0 {
        var note = entry
        note.level = "warning"
        note.message =
          "\(state.dropped) lines were not kept: they came faster than the disk writes."
        note.invocation = nil
        note.metadata = [:]
        state.pending.append(note)
        state.dropped = 0
      }
      state.pending.append(entry)
      state.pendingBytes += entry.message.utf8.count
      defer { state.isWriting = true }
      return !state.isWriting
    }
    if begins { submit() }
  }

  /// Returns once everything accepted so far has been written.
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

  /// The last `limit` lines of the files, oldest first.
  func latest(_ limit: Int, of function: String?) async -> [FunctionLogEntry] {
    await flush()
    let read = try? await NIOThreadPool.singleton.runIfActive { self.read(limit, of: function) }
    // The pool's threads end only with the process, and then nobody reads the log.
    return read ?? []
  }

  private func submit() {
    NIOThreadPool.singleton.submit { _ in self.writePending() }
  }

  private func writePending() {
    while true {
      let (entries, flushes) = state.withLock { state in
        let entries = state.pending
        state.pending = []
        state.pendingBytes = 0
        var flushes: [CheckedContinuation<Void, Never>] = []
        if entries.isEmpty {
          state.isWriting = false
          swap(&flushes, &state.flushes)
        }
        return (entries, flushes)
      }
      for flush in flushes { flush.resume() }
      if entries.isEmpty { return }
      write(entries)
    }
  }

  private func write(_ entries: [FunctionLogEntry]) {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
    var bytes: [UInt8] = []
    for entry in entries {
      // Strings and dictionaries of strings always encode.
      guard let line = try? encoder.encode(entry) else { continue }
      bytes += line
      bytes.append(0x0A)
    }
    var descriptor = openCurrent()
    if descriptor < 0 {
      // This is for the first line of the first run; if this fails too, so does the next open.
      try? FileManager.default.createDirectory(
        atPath: folder,
        withIntermediateDirectories: true
      )
      descriptor = openCurrent()
    }
    guard descriptor >= 0 else { return }
    let size = lseek(descriptor, 0, SEEK_END)
    bytes.withUnsafeBytes { buffer in
      var rest = buffer[...]
      while !rest.isEmpty {
        let written = platformWrite(descriptor, UnsafeRawBufferPointer(rebasing: rest))
        if written <= 0 { return }
        rest = rest.dropFirst(written)
      }
    }
    close(descriptor)
    if Int(size) + bytes.count > bytesMax { rotate() }
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

  private func read(_ limit: Int, of function: String?) -> [FunctionLogEntry] {
    let decoder = JSONDecoder()
    var newestFirst: [FunctionLogEntry] = []
    for index in 0..<filesMax where newestFirst.count < limit {
      guard let content = FileManager.default.contents(atPath: path(index)) else { break }
      for line in content.split(separator: 0x0A).reversed() where newestFirst.count < limit {
        // A line that a crash cut in half is skipped.
        guard let entry = try? decoder.decode(FunctionLogEntry.self, from: Data(line)) else {
          continue
        }
        if function == nil || entry.function == function { newestFirst.append(entry) }
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
