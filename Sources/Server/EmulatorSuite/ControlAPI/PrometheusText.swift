/// Metrics in the text format of Prometheus, version 0.0.4.
struct PrometheusText {
  private(set) var text = ""

  enum Kind: String {
    case counter, gauge, histogram
  }

  /// A value with its labels.
  struct Sample {
    var labels: [(name: String, value: String)] = []
    var value: Double

    init(_ value: Double, _ labels: (name: String, value: String)...) {
      self.value = value
      self.labels = labels
    }
  }

  static let mediaType = "text/plain; version=0.0.4; charset=utf-8"

  /// Adds a metric; adds nothing if there are no samples.
  mutating func add(_ name: String, _ kind: Kind, _ help: String, _ samples: [Sample]) {
    guard !samples.isEmpty else { return }
    begin(name, kind, help)
    for sample in samples { line(name, sample.labels, sample.value) }
  }

  /// Adds a histogram for each value of a label.
  ///
  /// `counts` contains a count per bucket; `bounds` are the upper bounds, without the last,
  /// infinite one.
  mutating func addHistogram(
    _ name: String,
    _ help: String,
    bounds: [Double],
    label: String,
    _ values: [(label: String, counts: [Int], sum: Double)]
  ) {
    guard !values.isEmpty else { return }
    begin(name, .histogram, help)
    for value in values {
      var count = 0
      for (bound, classCount) in zip(bounds + [.infinity], value.counts) {
        count += classCount
        let end = bound.isInfinite ? "+Inf" : Self.number(bound)
        line("\(name)_bucket", [(label, value.label), ("le", end)], Double(count))
      }
      line("\(name)_sum", [(label, value.label)], value.sum)
      line("\(name)_count", [(label, value.label)], Double(count))
    }
  }

  private mutating func begin(_ name: String, _ kind: Kind, _ help: String) {
    text += "# HELP \(name) \(help)\n# TYPE \(name) \(kind.rawValue)\n"
  }

  private mutating func line(
    _ name: String,
    _ labels: [(name: String, value: String)],
    _ value: Double
  ) {
    text += name
    if !labels.isEmpty {
      let pairs = labels.map { "\($0.name)=\"\(Self.escaped($0.value))\"" }
      text += "{\(pairs.joined(separator: ","))}"
    }
    text += " \(Self.number(value))\n"
  }

  private static func number(_ value: Double) -> String {
    value == value.rounded() && abs(value) < 1e15 ? String(Int(value)) : "\(value)"
  }

  private static func escaped(_ text: String) -> String {
    var escaped = ""
    for character in text.unicodeScalars {
      switch character {
      case "\\": escaped += "\\\\"
      case "\"": escaped += "\\\""
      case "\n": escaped += "\\n"
      default: escaped.unicodeScalars.append(character)
      }
    }
    return escaped
  }
}
