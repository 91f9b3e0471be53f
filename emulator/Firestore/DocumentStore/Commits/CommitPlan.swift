package import DocumentModel
import Events
import StatusCodes

/// The effects of one commit's writes on the documents they name, computed from values alone.
///
/// Later writes to a document see the effects of earlier ones. `checkPreconditions` is separate
/// because access is decided before preconditions. Times are the request's until `changes(at:)`
/// replaces them with the commit's.
struct CommitPlan: Sendable {
  /// One write with the states before and after it.
  struct Step: Sendable {
    var write: Write
    /// The index of the write's document in `documents`.
    var document: Int
    var before: State?
    var after: State?
    var transformResults: [FirestoreValue] = []
  }

  /// A document that the commit names, with its state before and after the whole commit.
  struct NamedDocument: Sendable {
    var name: DocumentName
    var original: FirestoreDocument?
    var final: State?

    /// True if the commit leaves a state that differs from the stored one.
    ///
    /// Only content counts: writing back the stored content changes nothing, but deleting and
    /// re-creating the document does.
    var isChanged: Bool {
      guard let original else { return final != nil }
      guard let final else { return true }
      return final.createTime == nil || final.fields != original.fields
    }
  }

  /// The content of an existing document.
  struct State: Sendable {
    var fields: MapValue
    /// The create time; nil for a document that this commit creates.
    var createTime: Timestamp?
  }

  private(set) var steps: [Step] = []
  private(set) var documents: [NamedDocument] = []
  /// The value of every server timestamp, in whole milliseconds.
  let requestTime: Timestamp

  /// Applies `writes` in order to the results of `stored`, which is called once for each document.
  init(
    _ writes: [Write],
    requestTime: Timestamp,
    stored: (DocumentName) throws -> FirestoreDocument?
  ) rethrows {
    self.requestTime = requestTime.flooredToMillisecond
    var indexes: [DocumentName: Int] = [:]
    for write in writes {
      if indexes[write.name] == nil {
        let original = try stored(write.name)
        indexes[write.name] = documents.count
        documents.append(
          NamedDocument(
            name: write.name,
            original: original,
            final: original.map { State(fields: $0.fields, createTime: $0.createTime) }
          )
        )
      }
      if let index = indexes[write.name] { apply(write, toDocument: index) }
    }
  }

  private mutating func apply(_ write: Write, toDocument index: Int) {
    let before = documents[index].final
    var step = Step(write: write, document: index, before: before, after: before)
    switch write.operation {
    case .delete: step.after = nil
    case .verify: break
    case .update(_, let fields, let mask, let transforms):
      var state = before ?? State(fields: [:], createTime: nil)
      if let mask {
        for path in mask where !path.isDocumentID {
          state.fields.set(fields[path], at: path)
        }
      } else {
        state.fields = fields
      }
      for transform in transforms {
        step.transformResults.append(
          transform.apply(to: &state.fields, requestTime: requestTime)
        )
      }
      step.after = state
    }
    documents[index].final = step.after
    steps.append(step)
  }

  /// Checks preconditions and sizes in the order of the writes and throws the first failure.
  func checkPreconditions() throws(StatusError) {
    for step in steps {
      let document = documents[step.document]
      try PreconditionCheck.check(
        step.write.precondition,
        of: document.name,
        exists: step.before != nil,
        stored: document.original?.updateTime
      )
      if case .update = step.write.operation, let after = step.after {
        try DocumentLimits.check(document.name, after.fields)
      }
    }
  }

  /// Returns the changes that the commit makes, one per document, in order of first mention.
  func changes(at commitTime: Timestamp) -> [DocumentChange] {
    documents.filter(\.isChanged).map { document in
      DocumentChange(
        name: document.name,
        before: document.original,
        after: document.final.map { Self.document(document.name, $0, at: commitTime) }
      )
    }
  }

  /// Returns the results of the writes.
  ///
  /// An update's result has the resulting version of its document.
  func results(at commitTime: Timestamp) -> [WriteOutcome] {
    steps.map { step in
      guard case .update = step.write.operation else { return WriteOutcome() }
      let document = documents[step.document]
      let updateTime =
        document.final == nil
        ? nil : document.isChanged ? commitTime : document.original?.updateTime
      return WriteOutcome(updateTime: updateTime, transformResults: step.transformResults)
    }
  }

  /// Returns a state as a document with the update time `time`.
  ///
  /// Documents that this commit creates also have `time` as their create time.
  static func document(_ name: DocumentName, _ state: State, at time: Timestamp)
    -> FirestoreDocument
  {
    FirestoreDocument(
      name: name,
      fields: state.fields,
      createTime: state.createTime ?? time,
      updateTime: time
    )
  }
}

/// The result of one write.
package struct WriteOutcome: Sendable, Hashable {
  /// The version of the document after the commit; nil for deletes and verifies.
  ///
  /// Older than the commit if the commit left the document unchanged.
  package var updateTime: Timestamp?
  /// One value for each transform, in order: the new value, or null for array transforms.
  package var transformResults: [FirestoreValue]

  /// Creates a result; an empty one stands for a delete, a verify or a failed write of a batch.
  package init(updateTime: Timestamp? = nil, transformResults: [FirestoreValue] = []) {
    self.updateTime = updateTime
    self.transformResults = transformResults
  }
}
