import FirestoreProtos
import RuntimeSupport
import SwiftProtobuf

// Requests whose parts come from path and query parameters rather than from a body.

extension Google_Firestore_V1_GetDocumentRequest {
  init(name: String, _ parameters: inout RESTParameters) throws(StatusError) {
    self.init()
    self.name = name
    if let paths = parameters.list("mask.fieldPaths") { mask.fieldPaths = paths }
    let time = try parameters.time("readTime")
    if let time { readTime = time }
    if let bytes = try parameters.bytes("transaction") {
      guard time == nil else {
        throw RESTParameters.conflict(of: "consistency_selector", "transaction")
      }
      transaction = bytes
    }
    try parameters.finish()
  }
}

extension Google_Firestore_V1_ListDocumentsRequest {
  init(
    parent: String,
    collectionID: String,
    _ parameters: inout RESTParameters
  ) throws(StatusError) {
    self.init()
    self.parent = parent
    self.collectionID = collectionID
    pageSize = try parameters.number("pageSize") ?? 0
    pageToken = parameters.text("pageToken")
    orderBy = parameters.text("orderBy")
    if let paths = parameters.list("mask.fieldPaths") { mask.fieldPaths = paths }
    let time = try parameters.time("readTime")
    if let time { readTime = time }
    if let bytes = try parameters.bytes("transaction") {
      guard time == nil else {
        throw RESTParameters.conflict(of: "consistency_selector", "transaction")
      }
      transaction = bytes
    }
    showMissing = try parameters.flag("showMissing") ?? false
    try parameters.finish()
  }
}

extension Google_Firestore_V1_CreateDocumentRequest {
  init(
    parent: String,
    collectionID: String,
    document: Google_Firestore_V1_Document,
    _ parameters: inout RESTParameters
  ) throws(StatusError) {
    self.init()
    self.parent = parent
    self.collectionID = collectionID
    self.document = document
    documentID = parameters.text("documentId")
    if let paths = parameters.list("mask.fieldPaths") { mask.fieldPaths = paths }
    try parameters.finish()
  }
}

extension Google_Firestore_V1_UpdateDocumentRequest {
  /// The path's name replaces one in the body.
  init(
    name: String,
    document: Google_Firestore_V1_Document,
    _ parameters: inout RESTParameters
  ) throws(StatusError) {
    self.init()
    self.document = document
    self.document.name = name
    if let paths = parameters.list("updateMask.fieldPaths") { updateMask.fieldPaths = paths }
    if let paths = parameters.list("mask.fieldPaths") { mask.fieldPaths = paths }
    if let precondition = try parameters.precondition() { currentDocument = precondition }
    try parameters.finish()
  }
}

extension Google_Firestore_V1_DeleteDocumentRequest {
  init(name: String, _ parameters: inout RESTParameters) throws(StatusError) {
    self.init()
    self.name = name
    if let precondition = try parameters.precondition() { currentDocument = precondition }
    try parameters.finish()
  }
}

extension RESTParameters {
  /// The precondition in `currentDocument.exists` or `currentDocument.updateTime`.
  fileprivate mutating func precondition() throws(StatusError) -> Google_Firestore_V1_Precondition?
  {
    let exists = try flag("currentDocument.exists")
    let updateTime = try time("currentDocument.updateTime")
    guard exists == nil || updateTime == nil else {
      throw Self.conflict(of: "condition_type", "updateTime")
    }
    if let exists { return .with { $0.exists = exists } }
    return updateTime.map { time in .with { $0.updateTime = time } }
  }
}
