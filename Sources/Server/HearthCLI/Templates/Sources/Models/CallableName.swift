// Models is public and has no dependencies, because apps outside of this package import it.

/// The name of a callable function, with the types of its payload and its reply.
///
/// The function is declared with it and the app calls it, so that the two cannot differ.
public struct CallableName<Payload: Codable & Sendable, Reply: Codable & Sendable>: Sendable {
  /// The name under which the function is deployed and called.
  public let name: String

  /// Creates the name of a callable function.
  public init(_ name: String) {
    self.name = name
  }
}
