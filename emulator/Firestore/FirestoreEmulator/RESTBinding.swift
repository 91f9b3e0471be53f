import FirestoreProtos
import StatusCodes
import SwiftProtobuf

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

// Requests whose fields come from the path and query parameters instead of a body.

extension Google_Firestore_V1_GetDocumentRequest {
  init(name: String, _ parameters: inout RESTParameters) throws(StatusError) {
    self.init()
    self.name = name
    if let paths = parameters.list("mask.fieldPaths") { mask.fieldPaths = paths }
    switch try parameters.consistency() {
    case .transaction(let id): transaction = id
    case .readTime(let time): readTime = time
    case nil: break
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
    switch try parameters.consistency() {
    case .transaction(let id): transaction = id
    case .readTime(let time): readTime = time
    case nil: break
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
  /// Creates the request; the name in the path replaces a name in the body.
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
  fileprivate enum Consistency {
    case transaction(Data)
    case readTime(Google_Protobuf_Timestamp)
  }

  /// Returns the transaction or the read time; throws if both are given.
  fileprivate mutating func consistency() throws(StatusError) -> Consistency? {
    let time = try time("readTime")
    guard let id = try bytes("transaction") else { return time.map { .readTime($0) } }
    guard time == nil else { throw Self.conflict(of: "consistency_selector", "transaction") }
    return .transaction(id)
  }

  /// Returns the precondition in `currentDocument.exists` or `currentDocument.updateTime`.
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
