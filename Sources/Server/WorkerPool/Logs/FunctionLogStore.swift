package import FlowControl
package import FunctionLogs
import Synchronization

#if canImport(FoundationEssentials)
  package import FoundationEssentials
#else
  package import Foundation
#endif

/// The log of the functions: recent lines in memory, older ones in files.
///
/// Appending never blocks: files are written in the background, in order. A follower that does not
/// keep up loses its oldest unread lines, and receives a line that reports how many were lost.
package final class FunctionLogStore: Sendable {
  /// The bounds of a log store.
  package struct Configuration: Sendable {
    /// The maximum number of lines in memory, and the most that `entries` returns.
    package var entriesMax: Int
    /// The maximum bytes of lines in memory with metadata, and the most that `entries` returns.
    package var bytesMax: Int
    /// The size at which a file is closed and a new one is started.
    package var fileBytesMax: Int
    /// The maximum number of files, including the current one.
    package var filesMax: Int
    /// The maximum number of bytes of unread lines that are kept for a follower.
    package var followerBytesMax: Int

    /// Creates bounds that suit a developer's machine: minutes in memory, days on disk.
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
    var entries: RecentElements<FunctionLogEntry>
    var followers: [Int: Follower] = [:]
    var nextFollower = 0
  }

  private let configuration: Configuration
  private let files: LogFiles?
  private let now: @Sendable () -> Date
  private let onEntry: (@Sendable (FunctionLogEntry) -> Void)?
  private let state: Mutex<State>

  /// Creates a log that also writes to files in `folder`, if one is given.
  ///
  /// `onEntry` is called for each line, on the thread that appends it, so that a terminal can show
  /// it.
  package init(
    folder: String? = nil,
    configuration: Configuration = Configuration(),
    now: @escaping @Sendable () -> Date,
    onEntry: (@Sendable (FunctionLogEntry) -> Void)? = nil
  ) {
    self.configuration = configuration
    state = Mutex(
      State(
        entries: RecentElements(
          countMax: configuration.entriesMax,
          bytesMax: configuration.bytesMax
        )
      )
    )
    self.files = folder.map {
      LogFiles(folder: $0, bytesMax: configuration.fileBytesMax, filesMax: configuration.filesMax)
    }
    self.now = now
    self.onEntry = onEntry
  }

  /// The total size of the lines in memory.
  var bytes: Int { state.withLock { $0.entries.bytes } }

  package func append(_ entry: FunctionLogEntry) {
    let bytes = entry.memoryBytes
    let followers = state.withLock { state in
      state.entries.append(entry, bytes: bytes)
      return state.followers.values.filter { $0.function == nil || $0.function == entry.function }
    }
    for follower in followers { follower.source.send(entry, bytes: bytes) }
    files?.append(entry, bytes: bytes)
    onEntry?(entry)
  }

  /// Adds a line with the current time.
  package func append(
    function: String,
    level: String,
    message: String,
    invocation: String? = nil,
    trace: String? = nil,
    metadata: [String: String] = [:],
    end: InvocationEnd? = nil
  ) {
    append(
      FunctionLogEntry(
        time: Self.text(now()),
        function: function,
        level: level,
        message: message,
        invocation: invocation,
        trace: trace,
        metadata: metadata,
        end: end
      )
    )
  }

  /// Returns the latest lines, oldest first.
  ///
  /// If there are files, this includes lines of earlier runs.
  package func entries(function: String? = nil, limit: Int = 1_000) async -> [FunctionLogEntry] {
    let limit = min(limit, configuration.entriesMax)
    let (recent, isComplete) = state.withLock { state in
      (
        state.entries.filter { function == nil || $0.function == function },
        state.entries.dropped == 0
      )
    }
    if recent.count >= limit || !isComplete { return Array(recent.suffix(limit)) }
    // The files also contain the lines in memory, so reading the files is enough.
    guard
      let stored = await files?.latest(limit, bytesMax: configuration.bytesMax, of: function),
      stored.count > recent.count
    else {
      return Array(recent.suffix(limit))
    }
    return stored
  }

  /// Returns a stream of the lines appended from now on; it ends when its reader stops.
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

  /// The number of current followers.
  var followersCount: Int { state.withLock { $0.followers.count } }

  /// Returns once all lines appended so far are in the file.
  package func flush() async {
    await files?.flush()
  }

  /// Writes the lines appended so far to the file, within a short time; later ones are dropped.
  ///
  /// Called when the server stops, because its folder may be removed afterwards.
  package func close() async {
    await files?.end(within: Self.closeTimeMax)
  }

  /// The maximum time that the server's stop waits for a slow disk.
  private static let closeTimeMax = Duration.milliseconds(300)

  /// Formats a date as RFC 3339 with milliseconds.
  static func text(_ date: Date) -> String {
    date.formatted(
      .iso8601.year().month().day().timeZone(separator: .omitted)
        .time(includingFractionalSeconds: true).timeSeparator(.colon)
    )
  }
}
