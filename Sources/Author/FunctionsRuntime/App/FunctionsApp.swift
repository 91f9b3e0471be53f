package import Manifests

/// All functions of one binary, with the options that they share.
///
/// ```swift
/// let chat = ChatFunctions(db: db)
/// let app = FunctionsApp(defaults: .init(region: "europe-west1")) {
///   chat.embedMessage
///   chat.semanticSearch
/// }
/// await app.runService()
/// ```
public struct FunctionsApp: Sendable {
  package let functions: [FunctionDefinition]

  /// Creates an app with the functions that the block lists.
  ///
  /// `defaults` apply to each function that does not set the option itself.
  public init(
    defaults: GlobalOptions = GlobalOptions(),
    @FunctionsBuilder _ functions: () -> [FunctionDefinition]
  ) {
    self.functions = functions().map { function in
      var function = function
      function.options.fall(backTo: defaults.values, for: function.trigger)
      return function
    }
  }

  /// Returns the manifest of the binary after checking all functions.
  ///
  /// Throws `InvalidFunctionsError` with every problem found. Each problem says what to change.
  package func manifest() throws(InvalidFunctionsError) -> FunctionManifest {
    let problems = FunctionsValidation.problems(in: functions)
    guard problems.isEmpty else { throw InvalidFunctionsError(problems: problems) }
    let endpoints = functions.map { ($0.name, FunctionEndpoint($0)) }
    let rest = endpoints.flatMap { name, endpoint in
      endpoint.problems.map { "The function \"\(name)\" \($0)" }
    }
    guard rest.isEmpty else { throw InvalidFunctionsError(problems: rest) }
    return FunctionManifest(endpoints: Dictionary(endpoints) { first, _ in first })
  }
}

/// The error of an app whose functions cannot be deployed as they are declared.
package struct InvalidFunctionsError: Error, CustomStringConvertible, Equatable {
  package var problems: [String]

  package var description: String { problems.joined(separator: "\n") }
}

extension FunctionEndpoint {
  /// Creates the manifest entry of a function that has been checked.
  fileprivate init(_ function: FunctionDefinition) {
    let options = function.options
    self.init(entryPoint: function.name, region: [options.region ?? Self.defaultRegion])
    timeoutSeconds = options.timeout.map(\.wholeSeconds)
    availableMemoryMb = options.memory?.rawValue
    concurrency = options.concurrency
    minInstances = options.minInstances
    maxInstances = options.maxInstances
    secretEnvironmentVariables = options.secrets?.map { SecretVariable(key: $0) }
    let retry = options.retry
    switch function.trigger {
    case .callable: callableTrigger = CallableTrigger()
    case .typed, .http: httpsTrigger = HTTPSTrigger()
    case .document(let type, let pattern):
      eventTrigger = EventTrigger(type: type, pattern: pattern)
      eventTrigger?.setRetry(retry)
    case .value(let kind, let instance, let ref):
      eventTrigger = EventTrigger(of: kind, instance: instance, ref: ref)
      eventTrigger?.setRetry(retry)
    case .cloudEvent(let filter):
      eventTrigger = EventTrigger(
        eventType: filter.type,
        eventFilters: filter.attributes,
        eventFilterPathPatterns: filter.patterns.isEmpty ? nil : filter.patterns
      )
      eventTrigger?.setRetry(retry)
    case .schedule(let schedule, let timeZone):
      scheduleTrigger = ScheduleTrigger(
        schedule: schedule,
        timeZone: timeZone,
        retryConfig: retry.map { RetryConfig(ofSchedule: $0) }
      )
    case .taskQueue(let limits):
      taskQueueTrigger = TaskQueueTrigger(
        rateLimits: RateLimits(limits),
        retryConfig: retry.flatMap { RetryConfig(ofTasks: $0) }
      )
    case .blocking(let type):
      blockingTrigger = BlockingTrigger(
        eventType: type == .beforeCreate
          ? BlockingTrigger.beforeCreate : BlockingTrigger.beforeSignIn
      )
    }
  }
}
