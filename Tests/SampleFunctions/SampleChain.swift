import FirestoreClient
import FunctionsRuntime

/// Triggers that set off each other by what they write.
struct SampleChain: Sendable {
  let firestore: Firestore

  /// Passes each document of `hop1` on to `hop2`, those on to `hop3`, and those to `hop4`.
  @FunctionsBuilder
  var hops: [FunctionDefinition] {
    for number in 1...3 {
      OnDocumentCreated<FirestoreDocument>("hop\(number)", at: "hop\(number)/{id}") { event in
        event.logger.info("Passed on")
        let next = try firestore.document("hop\(number + 1)/\(event.params.id)")
        try await next.set(["from": .value("hop\(number)")])
      }
    }
  }

  /// Writes its own document again, whatever was written.
  var rewrite: OnDocumentWritten<FirestoreDocument> {
    .init("rewrite", at: "rewritten/{id}") { event in
      let document = try firestore.document("rewritten/\(event.params.id)")
      try await document.set(["times": .increment(1)], .merge)
    }
  }
}
