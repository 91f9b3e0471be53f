import Invocation

extension FunctionLogEntry {
  /// About how much memory the line takes, for the bounds of everything that holds lines.
  var memoryBytes: Int {
    let texts = [time, function, level, message, invocation ?? "", trace ?? ""]
    let details = metadata.reduce(0) {
      $0 + $1.key.utf8.count + $1.value.utf8.count + Self.detailBytes
    }
    return texts.reduce(Self.fixedBytes) { $0 + $1.utf8.count } + details
  }

  /// The value itself and an allocation for each of its texts.
  static var fixedBytes: Int { 256 }
  /// A place in the dictionary, of which a quarter is free, and two allocations.
  static var detailBytes: Int { 128 }
}
