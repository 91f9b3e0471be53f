/// The destination of a task whose sender gave an address other than the queue's function.
package struct TaskTarget: Sendable, Hashable {
  /// The HTTP method of the request, such as `POST`.
  package var method: String
  package var place: Place

  /// The receiver of the request.
  package enum Place: Sendable, Hashable {
    /// Another function of the same suite, and the path and query that it receives.
    case function(String, path: String)
    /// A server on this machine, as an absolute `http` or `https` URL.
    case url(String)
  }

  package init(method: String, place: Place) {
    self.method = method
    self.place = place
  }
}
