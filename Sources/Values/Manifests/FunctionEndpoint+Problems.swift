extension FunctionEndpoint {
  /// The reasons why the function cannot be served.
  ///
  /// Each is the end of a sentence that begins with the function's name. A manifest comes from
  /// another program, so every reader checks this property before using the endpoint. Schedules and
  /// path patterns are not checked here.
  package var problems: [String] {
    let triggers = [
      callableTrigger != nil, httpsTrigger != nil, eventTrigger != nil, scheduleTrigger != nil,
      taskQueueTrigger != nil, blockingTrigger != nil,
    ].count { $0 }
    let trigger = "has \(triggers) triggers; it needs exactly one."
    return (triggers == 1 ? [] : [trigger]) + numberProblems + retryProblems + textProblems
  }

  private var numberProblems: [String] {
    var problems = [
      Self.problem("timeout", timeoutSeconds, 1...timeoutSecondsMax, unit: " s"),
      Self.problem("memory", availableMemoryMb, FunctionLimits.memoryMebibytes, unit: " MiB"),
      Self.problem("concurrency", concurrency, 1...FunctionLimits.concurrencyMax),
      Self.problem("minInstances", minInstances, 0...FunctionLimits.instancesMax),
      Self.problem("maxInstances", maxInstances, 1...FunctionLimits.instancesMax),
    ].compactMap(\.self)
    if let minInstances, let maxInstances, minInstances > maxInstances {
      problems.append(
        "has more minInstances (\(minInstances)) than maxInstances (\(maxInstances))."
      )
    }
    let rates = taskQueueTrigger?.rateLimits
    if let problem = Self.problem(
      "maxConcurrentDispatches",
      rates?.maxConcurrentDispatches,
      1...FunctionLimits.concurrentTasksMax
    ) {
      problems.append(problem)
    }
    let rateMax = FunctionLimits.tasksPerSecondMax
    if let rate = rates?.maxDispatchesPerSecond, !(rate > 0 && rate <= Double(rateMax)) {
      problems.append(
        "has a maxDispatchesPerSecond of \(rate); give more than 0, up to \(rateMax)."
      )
    }
    return problems
  }

  private var retryProblems: [String] {
    let retries = [
      eventTrigger?.retryConfig, scheduleTrigger?.retryConfig, taskQueueTrigger?.retryConfig,
    ]
    let times = 0...FunctionLimits.retrySecondsMax
    return retries.compactMap(\.self).flatMap { retry in
      var problems = [
        Self.problem("maxRetrySeconds", retry.maxRetrySeconds, times),
        Self.problem("minBackoffSeconds", retry.minBackoffSeconds, times),
        Self.problem("maxBackoffSeconds", retry.maxBackoffSeconds, times),
        Self.problem("maxDoublings", retry.maxDoublings, 0...Int.max),
        Self.problem("retryCount", retry.retryCount, 0...FunctionLimits.scheduleRetriesMax),
      ].compactMap(\.self)
      if let attempts = retry.maxAttempts, attempts < 1, attempts != -1 {
        problems.append("has a maxAttempts of \(attempts); give 1 or more, or -1 for no bound.")
      }
      return problems
    }
  }

  private var textProblems: [String] {
    var problems: [String] = []
    let secrets = (secretEnvironmentVariables ?? []).map(\.key)
    let filters = eventTrigger?.eventFilters ?? [:]
    let patterns = eventTrigger?.eventFilterPathPatterns ?? [:]
    for (list, count) in [
      ("regions", region.count), ("secrets", secrets.count),
      ("event filters", filters.count + patterns.count),
    ] where count > FunctionLimits.listMax {
      problems.append("has \(count) \(list); give at most \(FunctionLimits.listMax).")
    }
    let texts =
      [
        entryPoint, platform, eventTrigger?.eventType, scheduleTrigger?.timeZone,
        blockingTrigger?.eventType,
      ]
      .compactMap(\.self) + region + secrets + filters.flatMap { [$0.key, $0.value] }
      + patterns.flatMap { [$0.key, $0.value] }
    if let text = texts.first(where: { $0.utf8.count > FunctionLimits.textBytesMax }) {
      problems.append(
        "has a text of \(text.utf8.count) bytes, \"\(text.prefix(40))…\"; give at most "
          + "\(FunctionLimits.textBytesMax)."
      )
    }
    // The messages below repeat texts, so a text that is too long must not reach them.
    guard problems.isEmpty else { return problems }
    problems += region.filter { !Self.isRegion($0) }.map {
      "has the region \"\($0)\"; give one such as europe-west1."
    }
    problems += secrets.filter { !Self.isVariable($0) }.map {
      "has the secret \"\($0)\"; a secret's name has letters, digits and _, and no digit first."
    }
    if let type = eventTrigger?.eventType, type.isEmpty || type.contains(where: \.isWhitespace) {
      problems.append("has the event type \"\(type)\"; give a CloudEvents type.")
    }
    if let type = blockingTrigger?.eventType,
      ![BlockingTrigger.beforeCreate, BlockingTrigger.beforeSignIn].contains(type)
    {
      problems.append("has the blocking event \"\(type)\"; give user.beforeCreate or beforeSignIn.")
    }
    return problems
  }

  private static func problem<Number: Comparable>(
    _ option: String,
    _ number: Number?,
    _ range: ClosedRange<Number>,
    unit: String = ""
  ) -> String? {
    guard let number, !range.contains(number) else { return nil }
    return
      "has a \(option) of \(number)\(unit); give \(range.lowerBound) to \(range.upperBound)."
  }

  /// Returns true if a text can be a region in the path of a URL.
  private static func isRegion(_ text: String) -> Bool {
    !text.isEmpty
      && text.utf8.allSatisfy { (97...122).contains($0) || (48...57).contains($0) || $0 == 45 }
  }

  private static func isVariable(_ text: String) -> Bool {
    guard let first = text.utf8.first, !(48...57).contains(first) else { return false }
    return text.utf8.allSatisfy {
      (65...90).contains($0) || (97...122).contains($0) || (48...57).contains($0) || $0 == 95
    }
  }
}
