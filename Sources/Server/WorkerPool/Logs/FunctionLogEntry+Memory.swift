import FunctionLogs

extension FunctionLogEntry {
  /// The approximate memory of the entry, used by the bounds of every buffer that holds entries.
  var memoryBytes: Int {
    let texts = [time, function, level, message, invocation ?? "", trace ?? ""]
    let details = metadata.reduce(0) {
      $0 + $1.key.utf8.count + $1.value.utf8.count + Self.detailBytes
    }
    return texts.reduce(Self.fixedBytes) { $0 + $1.utf8.count } + details
  }

  /// The size of the value itself and of one allocation for each of its strings.
  static var fixedBytes: Int { 256 }
  /// The size of a dictionary slot, including a quarter of free slots, and of two allocations.
  static var detailBytes: Int { 128 }
}
