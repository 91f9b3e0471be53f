/// What `hearth export` asks of the hub.
package struct ExportOrder: Codable, Sendable, Hashable {
  /// Absolute, on the suite's machine.
  package var path: String
  /// Whether an earlier export there may be replaced; no when absent.
  package var force: Bool?

  /// An order to export everything.
  package init(path: String, force: Bool) {
    self.path = path
    self.force = force
  }
}

/// What `hearth import` asks of the hub.
package struct ImportOrder: Codable, Sendable, Hashable {
  /// Absolute, on the suite's machine.
  package var path: String
  package var fireTriggers: Bool?
  package var replace: Bool?

  /// An order to import a folder.
  package init(path: String, fireTriggers: Bool, replace: Bool) {
    self.path = path
    self.fireTriggers = fireTriggers
    self.replace = replace
  }
}

/// What an export or an import has done.
package struct TransferSummary: Codable, Sendable, Hashable {
  /// The absolute path of the folder.
  package var path: String
  package var documents: Int
  /// Those of an import that were not there already.
  package var changedDocuments: Int
  package var vectors: Int
}
