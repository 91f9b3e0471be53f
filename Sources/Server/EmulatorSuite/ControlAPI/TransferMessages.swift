/// The request that `hearth export` sends to the hub.
package struct ExportOrder: Codable, Sendable, Hashable {
  /// The absolute path on the suite's machine.
  package var path: String
  /// True if an existing export may be replaced; nil means false.
  package var force: Bool?
  /// The form of the documents: `hearth` or `firebase`; nil means `hearth`.
  package var format: String?

  package init(path: String, force: Bool, format: String) {
    self.path = path
    self.force = force
    self.format = format
  }
}

/// The progress of an import that takes long.
package struct TransferProgress: Codable, Sendable, Hashable {
  /// The progress in words, such as `checking, 40%`; nil while nothing is imported.
  package var text: String?
}

/// The request that `hearth import` sends to the hub.
package struct ImportOrder: Codable, Sendable, Hashable {
  /// The absolute path on the suite's machine.
  package var path: String
  package var fireTriggers: Bool?
  package var replace: Bool?
  /// The instance of the Realtime Database whose tree the file is; empty for the first one.
  ///
  /// Nil for an export or a file of documents.
  package var instance: String?

  package init(path: String, fireTriggers: Bool, replace: Bool, instance: String? = nil) {
    self.path = path
    self.fireTriggers = fireTriggers
    self.replace = replace
    self.instance = instance
  }
}

/// The result of an export or an import.
package struct TransferSummary: Codable, Sendable, Hashable {
  /// The absolute path of the folder.
  package var path: String
  package var documents: Int
  /// The number of imported documents that were new or different; all documents for an export.
  package var changedDocuments: Int
  package var users: Int
  /// The number of instances of the Realtime Database; nil if there are none.
  package var instances: Int?
  package var vectors: Int
  /// The parts of an imported export that no emulator of the suite can take, such as `storage`.
  package var skippedParts: [String]?
}
