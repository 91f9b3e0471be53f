/// What a functions binary offers, in the form of Firebase's `functions.yaml` (`v1alpha1`), as JSON.
///
/// A worker prints it on request (`FUNCTIONS_MANIFEST_OUTPUT_PATH`, `GET /__/functions.yaml`);
/// the deployment validates it, the gateway and the triggers read it.
package struct FunctionManifest: Codable, Sendable, Hashable {
  package var specVersion: String
  /// Endpoints by the function's name.
  package var endpoints: [String: FunctionEndpoint]

  /// A manifest of the current version.
  package init(endpoints: [String: FunctionEndpoint]) {
    self.specVersion = "v1alpha1"
    self.endpoints = endpoints
  }
}

/// One function: its options and exactly one trigger.
package struct FunctionEndpoint: Codable, Sendable, Hashable {
  package var entryPoint: String
  package var region: [String]
  package var platform: String
  /// Total time of one invocation; 60 when absent.
  package var timeoutSeconds: Int?
  package var availableMemoryMb: Int?
  /// Invocations that one worker runs at once; 80 when absent.
  package var concurrency: Int?
  package var minInstances: Int?
  package var maxInstances: Int?
  package var secretEnvironmentVariables: [SecretVariable]?
  package var callableTrigger: CallableTrigger?
  package var httpsTrigger: HTTPSTrigger?
  package var eventTrigger: EventTrigger?

  /// Where a function is that does not say; Firebase's own choice.
  package static let defaultRegion = "us-central1"

  /// The regions at which it is called, one at least.
  package var regions: [String] { region.isEmpty ? [Self.defaultRegion] : region }

  /// An endpoint on `gcfv2`; the caller sets one trigger.
  package init(entryPoint: String, region: [String] = [Self.defaultRegion]) {
    self.entryPoint = entryPoint
    self.region = region
    self.platform = "gcfv2"
  }

  /// A secret by the name of its environment variable.
  package struct SecretVariable: Codable, Sendable, Hashable {
    package var key: String

    /// A secret that the function may read.
    package init(key: String) { self.key = key }
  }

  /// Marks a callable.
  package struct CallableTrigger: Codable, Sendable, Hashable {
    /// A callable without options.
    package init() {}
  }

  /// Marks a plain HTTP function.
  package struct HTTPSTrigger: Codable, Sendable, Hashable {
    /// An HTTP function without options.
    package init() {}
  }

  /// Which events a function receives.
  package struct EventTrigger: Codable, Sendable, Hashable {
    /// A CloudEvents type.
    package var eventType: String
    /// Attributes that must be equal, such as `database` and `namespace`.
    package var eventFilters: [String: String]
    /// Attributes that must match a pattern, such as `document`: `chats/{chatId}`.
    package var eventFilterPathPatterns: [String: String]?
    /// Whether a failing handler is tried again.
    package var retry: Bool

    /// A trigger for one event type.
    package init(
      eventType: String,
      eventFilters: [String: String],
      eventFilterPathPatterns: [String: String]? = nil,
      retry: Bool = false
    ) {
      self.eventType = eventType
      self.eventFilters = eventFilters
      self.eventFilterPathPatterns = eventFilterPathPatterns
      self.retry = retry
    }
  }
}
