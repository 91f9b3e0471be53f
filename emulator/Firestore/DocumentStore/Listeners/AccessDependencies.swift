import DocumentModel
import Events

/// The moment as of which a subscriber's access has to be rechecked.
struct AccessMoment: Sendable {
  /// The commit that changed a document the permission depends on.
  ///
  /// After a change of the policy, the last commit processed before it.
  var sequence: UInt64
  /// A time at which this commit was the last one.
  var time: Timestamp
  var policyVersion: UInt64
}

/// The documents that the permissions of subscribers depend on.
///
/// The administrator's access depends on none.
struct AccessDependencies: Sendable {
  typealias SubscriptionID = ListenTable.SubscriptionID

  private var documents: [SubscriptionID: Set<DocumentName>] = [:]
  /// The inverse of `documents`.
  private var subscriptions: [DocumentName: Set<SubscriptionID>] = [:]

  /// The subscriptions whose access has to be rechecked after a change of the policy.
  var all: Set<SubscriptionID> { Set(documents.keys) }

  /// Sets the documents that a subscriber's permission depends on.
  ///
  /// Returns those that it did not depend on before.
  @discardableResult
  mutating func set(_ names: Set<DocumentName>, of id: SubscriptionID) -> Set<DocumentName> {
    let old = documents[id] ?? []
    guard names != old else { return [] }
    remove(id)
    documents[id] = names
    for name in names { subscriptions[name, default: []].insert(id) }
    return names.subtracting(old)
  }

  mutating func remove(_ id: SubscriptionID) {
    for name in documents.removeValue(forKey: id) ?? [] {
      subscriptions[name]?.remove(id)
      if subscriptions[name]?.isEmpty == true { subscriptions[name] = nil }
    }
  }

  /// Returns the subscriptions whose access may have changed with these documents.
  func affected(by changes: [DocumentChange]) -> Set<SubscriptionID> {
    guard !subscriptions.isEmpty else { return [] }
    return changes.reduce(into: Set()) { $0.formUnion(subscriptions[$1.name] ?? []) }
  }
}
