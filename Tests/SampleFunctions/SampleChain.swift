import FirestoreClient
import FunctionsRuntime

/// Triggers whose writes set off further triggers.
struct SampleChain: Sendable {
  let firestore: Firestore

  /// Copies each document of `hop1` to `hop2`, of `hop2` to `hop3`, and of `hop3` to `hop4`.
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

  /// Writes its own document again after every write, and so triggers itself endlessly.
  var rewrite: OnDocumentWritten<FirestoreDocument> {
    .init("rewrite", at: "rewritten/{id}") { event in
      let document = try firestore.document("rewritten/\(event.params.id)")
      try await document.set(["times": .increment(1)], .merge)
    }
  }
}
