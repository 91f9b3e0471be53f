/// One write of a commit, as defined by `google.firestore.v1.Write`.
package struct Write: Sendable, Hashable {
  package var operation: Operation
  package var precondition: Precondition

  /// Creates a write; without a precondition it always applies.
  package init(_ operation: Operation, precondition: Precondition = .none) {
    self.operation = operation
    self.precondition = precondition
  }

  /// The effect of a write.
  package enum Operation: Sendable, Hashable {
    /// Replaces the document or, with a mask, the masked fields; then applies the transforms.
    ///
    /// A masked path that is absent from `fields` is deleted. An empty mask changes no field but
    /// creates the document if it is missing. A legacy top-level transform is an update with an
    /// empty mask.
    case update(
      DocumentName,
      fields: MapValue,
      mask: [FieldPath]?,
      transforms: [FieldTransform]
    )
    case delete(DocumentName)
    /// Checks the precondition and changes nothing (`Write.verify`, which client SDKs send).
    case verify(DocumentName)
  }

  /// The document that the write applies to.
  package var name: DocumentName {
    switch operation {
    case .update(let name, _, _, _), .delete(let name), .verify(let name): name
    }
  }
}
