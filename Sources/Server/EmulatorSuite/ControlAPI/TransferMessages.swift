/// The request of `hearth export` to the hub.
package struct ExportOrder: Codable, Sendable, Hashable {
  /// The path on the suite's machine, absolute.
  package var path: String
  /// Whether an earlier export there may be replaced; false when absent.
  package var force: Bool?

  /// An order to export everything.
  package init(path: String, force: Bool) {
    self.path = path
    self.force = force
  }
}

/// The request of `hearth import` to the hub.
package struct ImportOrder: Codable, Sendable, Hashable {
  /// The path on the suite's machine, absolute.
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
  /// The imported documents that were not there already.
  package var changedDocuments: Int
  package var vectors: Int
}
