/// Where a task goes whose sender names an address other than its queue's function.
package struct TaskTarget: Sendable, Hashable {
  /// The request's method, such as `POST`.
  package var method: String
  package var place: Place

  /// What takes the request.
  package enum Place: Sendable, Hashable {
    /// Another function of the same suite, and the path with the query that it sees.
    case function(String, path: String)
    /// A server on this machine; an absolute `http` or `https` address.
    case url(String)
  }

  /// A target.
  package init(method: String, place: Place) {
    self.method = method
    self.place = place
  }
}
