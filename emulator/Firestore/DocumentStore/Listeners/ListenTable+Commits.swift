import DocumentModel
import EventLog
import Events
import QueryEngine

extension ListenTable {
  /// Processes the next record and notifies every live subscriber that it concerns.
  mutating func take(_ entry: EventEntry) {
    let record = entry.record
    guard record.sequence > sequence else { return }
    advance(to: record.commitTime)
    if record.purpose == .discontinuity {
      reset(record.database)
    } else if !views.isEmpty {
      deliver(record, bytes: entry.bytes)
    }
    sequence = record.sequence
    runDeferred()
  }

  mutating func deliver(_ record: CommitRecord, bytes: Int) {
    // Rechecks come before anything of this commit is sent.
    recheck(dependencies.affected(by: record.changes), record.sequence, record.commitTime)
    var affected: [ViewID: [DocumentChange]] = [:]
    var documents: [DocumentName: ListenedDocument] = [:]
    for change in record.changes {
      let ids = index.views(for: change)
      guard !ids.isEmpty else { continue }
      if let after = change.after { documents[change.name] = ListenedDocument(after) }
      for id in ids { affected[id, default: []].append(change) }
    }
    var parts: [ObjectIdentifier: (session: ListenSession, parts: [ListenedCommit.Part])] = [:]
    for (id, changes) in affected {
      guard let delta = delta(of: changes, in: id, record, documents), let view = views[id] else {
        continue
      }
      for subscriber in view.subscribers {
        guard let subscription = subscriptions[subscriber] else { continue }
        if subscription.backlog != nil {
          // Subscribers of windows get the window's results when they join, so they need no
          // backlog.
          if case .now(let sent) = delta, windows[id] == nil {
            subscriptions[subscriber]?.backlog?
              .append(sent, record.sequence, growth: view.growth, bytes: bytes)
          }
        } else {
          let key = ObjectIdentifier(subscription.session)
          let part = ListenedCommit.Part(subscription: subscriber, delta: delta)
          parts[key, default: (subscription.session, [])].parts.append(part)
        }
      }
    }
    for (session, parts) in parts.values {
      session.deliver(ListenedCommit(time: time, parts: parts, bytes: bytes))
      wake(session)
    }
    for id in affected.keys { resetIfOverfull(id) }
  }

  /// Returns the changes for a view's subscribers; nil if there are none.
  mutating func delta(
    of changes: [DocumentChange],
    in id: ViewID,
    _ record: CommitRecord,
    _ documents: [DocumentName: ListenedDocument]
  ) -> ListenedCommit.Delta? {
    switch views[id]?.shape {
    case .documents:
      return .now(
        changes.map { change in
          documents[change.name].map(ListenedChange.member) ?? .deleted(change.name)
        }
      )
    case .results(let query):
      var growth = 0
      let sent = changes.compactMap { change -> ListenedChange? in
        let matched = change.before.map(query.matches) ?? false
        if matched { growth -= 1 }
        guard let after = change.after, let document = documents[change.name] else {
          return matched ? .deleted(change.name) : nil
        }
        if query.matches(after) {
          growth += 1
          return .member(document)
        }
        return matched ? .former(document) : nil
      }
      views[id]?.growth = growth
      if let count = views[id]?.count { views[id]?.count = count + growth }
      return sent.isEmpty ? nil : .now(sent)
    case .window: return take(changes, of: record, inWindow: id)
    case nil: return nil
    }
  }
}
