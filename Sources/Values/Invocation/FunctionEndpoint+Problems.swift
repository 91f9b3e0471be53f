extension FunctionEndpoint {
  /// The options that are out of range, as ends of sentences that begin with the function's name.
  ///
  /// A manifest comes from another program, so every reader checks it before using it.
  package var problems: [String] {
    var problems: [String] = []
    func check<Number: Comparable>(
      _ option: String,
      _ number: Number?,
      _ range: ClosedRange<Number>,
      unit: String = ""
    ) {
      guard let number, !range.contains(number) else { return }
      problems.append(
        "has a \(option) of \(number)\(unit); give \(range.lowerBound) to \(range.upperBound)."
      )
    }
    check("timeout", timeoutSeconds, 1...timeoutSecondsMax, unit: " s")
    check("memory", availableMemoryMb, InvocationLimits.memoryMebibytes, unit: " MiB")
    check("concurrency", concurrency, 1...InvocationLimits.concurrencyMax)
    check("minInstances", minInstances, 0...InvocationLimits.instancesMax)
    check("maxInstances", maxInstances, 1...InvocationLimits.instancesMax)
    if let minInstances, let maxInstances, minInstances > maxInstances {
      problems.append(
        "has more minInstances (\(minInstances)) than maxInstances (\(maxInstances))."
      )
    }
    check(
      "maxConcurrentDispatches",
      taskQueueTrigger?.rateLimits?.maxConcurrentDispatches,
      1...5000
    )
    if let rate = taskQueueTrigger?.rateLimits?.maxDispatchesPerSecond, !(rate > 0 && rate <= 500) {
      problems.append("has a maxDispatchesPerSecond of \(rate); give more than 0, up to 500.")
    }
    let retries = [
      eventTrigger?.retryConfig, scheduleTrigger?.retryConfig, taskQueueTrigger?.retryConfig,
    ]
    for retry in retries.compactMap(\.self) {
      let times = 0...InvocationLimits.retrySecondsMax
      check("maxRetrySeconds", retry.maxRetrySeconds, times)
      check("minBackoffSeconds", retry.minBackoffSeconds, times)
      check("maxBackoffSeconds", retry.maxBackoffSeconds, times)
      check("maxDoublings", retry.maxDoublings, 0...Int.max)
      check("retryCount", retry.retryCount, 0...InvocationLimits.scheduleRetriesMax)
      if let attempts = retry.maxAttempts, attempts < 1, attempts != -1 {
        problems.append("has a maxAttempts of \(attempts); give 1 or more, or -1 for no bound.")
      }
    }
    return problems
  }
}
