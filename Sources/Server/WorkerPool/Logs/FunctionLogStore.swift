import DequeModule
package import Invocation
package import RuntimeSupport
import Synchronization

#if canImport(FoundationEssentials)
  package import FoundationEssentials
#else
  package import Foundation
#endif

/// The functions' log lines: in memory for a while, in files for longer.
///
/// Appending never waits: files are written in the background, in order. A follower that does not
/// keep up loses the oldest of the lines it has not read, and gets a line that says how many.
package final class FunctionLogStore: Sendable {
  /// How much is kept.
  package struct Configuration: Sendable {
    /// Lines in memory, and the most that `entries` returns.
    package var entriesMax: Int
    /// Bytes of all lines in memory with their metadata, and the most that `entries` returns.
    package var bytesMax: Int
    /// The size at which a file is closed and the next one begun.
    package var fileBytesMax: Int
    /// The files kept, including the current one.
    package var filesMax: Int
    /// Bytes of the lines by which a follower may be behind.
    package var followerBytesMax: Int

    /// Bounds for a developer's machine: some minutes in memory, some days on disk.
    package init(
      entriesMax: Int = 10_000,
      bytesMax: Int = 32 << 20,
      fileBytesMax: Int = 8 << 20,
      filesMax: Int = 4,
      followerBytesMax: Int = 4 << 20
    ) {
      self.entriesMax = entriesMax
      self.bytesMax = bytesMax
      self.fileBytesMax = fileBytesMax
      self.filesMax = filesMax
      self.followerBytesMax = followerBytesMax
    }
  }

  private struct Follower {
    var function: String?
    var source: BoundedStream<FunctionLogEntry>.Source
  }

  private struct State {
    var entries = Deque<FunctionLogEntry>()
    var bytes = 0
    var hasForgotten = false
    var followers: [Int: Follower] = [:]
    var nextFollower = 0
  }

  private let configuration: Configuration
  private let files: LogFiles?
  private let now: @Sendable () -> Date
  private let onEntry: (@Sendable (FunctionLogEntry) -> Void)?
  private let state = Mutex(State())

  /// A log that also writes to files in `folder`, if one is given.
  ///
  /// `onEntry` sees each line as it comes, on the thread that appends it: for the terminal.
  package init(
    folder: String? = nil,
    configuration: Configuration = Configuration(),
    now: @escaping @Sendable () -> Date,
    onEntry: (@Sendable (FunctionLogEntry) -> Void)? = nil
  ) {
    self.configuration = configuration
    self.files = folder.map {
      LogFiles(folder: $0, bytesMax: configuration.fileBytesMax, filesMax: configuration.filesMax)
    }
    self.now = now
    self.onEntry = onEntry
  }

  /// Bytes of the lines in memory.
  var bytes: Int { state.withLock { $0.bytes } }

  /// Adds a line.
  package func append(_ entry: FunctionLogEntry) {
    let bytes = entry.memoryBytes
    let followers = state.withLock { state in
      state.entries.append(entry)
      state.bytes += bytes
      while state.entries.count > configuration.entriesMax
        || state.bytes > configuration.bytesMax && state.entries.count > 1
      {
        state.bytes -= state.entries.removeFirst().memoryBytes
        state.hasForgotten = true
      }
      return state.followers.values.filter { $0.function == nil || $0.function == entry.function }
    }
    for follower in followers { follower.source.send(entry, bytes: bytes) }
    files?.append(entry, bytes: bytes)
    onEntry?(entry)
  }

  /// Adds a line with the present time.
  package func append(
    function: String,
    level: String,
    message: String,
    invocation: String? = nil,
    trace: String? = nil,
    metadata: [String: String] = [:]
  ) {
    append(
      FunctionLogEntry(
        time: Self.text(now()),
        function: function,
        level: level,
        message: message,
        invocation: invocation,
        trace: trace,
        metadata: metadata
      )
    )
  }

  /// The latest lines, oldest first, including those of earlier runs if there are files.
  package func entries(function: String? = nil, limit: Int = 1_000) async -> [FunctionLogEntry] {
    let limit = min(limit, configuration.entriesMax)
    let (recent, isComplete) = state.withLock { state in
      (
        state.entries.filter { function == nil || $0.function == function },
        !state.hasForgotten
      )
    }
    if recent.count >= limit || !isComplete { return Array(recent.suffix(limit)) }
    // The files end with the lines in memory, so they are read instead.
    guard
      let stored = await files?.latest(limit, bytesMax: configuration.bytesMax, of: function),
      stored.count > recent.count
    else {
      return Array(recent.suffix(limit))
    }
    return stored
  }

  /// Lines from now on; the stream ends when the reader stops.
  package func stream(function: String? = nil) -> BoundedStream<FunctionLogEntry> {
    let now = self.now
    let (stream, source) = BoundedStream<FunctionLogEntry>.make(
      bytesMax: configuration.followerBytesMax
    ) { count in
      FunctionLogEntry(
        time: Self.text(now()),
        function: function ?? "hearth",
        level: "warning",
        message: "\(count) lines were left out here: they came faster than they were read."
      )
    }
    let id = state.withLock { state in
      state.nextFollower += 1
      state.followers[state.nextFollower] = Follower(function: function, source: source)
      return state.nextFollower
    }
    source.onEnd { [weak self] in
      _ = self?.state.withLock { $0.followers.removeValue(forKey: id) }
    }
    return stream
  }

  /// The followers that there are.
  var followersCount: Int { state.withLock { $0.followers.count } }

  /// Returns once all lines so far are in the file.
  package func flush() async {
    await files?.flush()
  }

  /// Writes the lines so far to the file, for a moment at most; further ones are not in the file.
  ///
  /// For the end of the server: its folder may be removed afterwards.
  package func close() async {
    await files?.end(within: Self.closeTimeMax)
  }

  /// A stop has to be quick even when the disk is not.
  private static let closeTimeMax = Duration.milliseconds(300)

  /// RFC 3339 with milliseconds.
  static func text(_ date: Date) -> String {
    date.formatted(
      .iso8601.year().month().day().timeZone(separator: .omitted)
        .time(includingFractionalSeconds: true).timeSeparator(.colon)
    )
  }
}
