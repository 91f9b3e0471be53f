import DocumentModel

@testable import DocumentStore

let database = DatabaseName(project: "p")

func name(_ path: String) -> DocumentName {
  DocumentName(database: database, path: ResourcePath(slashSeparated: path))
}

func path(_ text: String) -> FieldPath {
  FieldPath(text.split(separator: ".").map(String.init))
}

func time(_ microseconds: Int64) -> Timestamp { Timestamp(microseconds: microseconds) }

func document(
  _ path: String,
  _ fields: MapValue = [:],
  created: Int64 = 100,
  updated: Int64 = 200
) -> FirestoreDocument {
  FirestoreDocument(
    name: name(path),
    fields: fields,
    createTime: time(created),
    updateTime: time(updated)
  )
}

func set(
  _ path: String,
  _ fields: MapValue = [:],
  mask: [String]? = nil,
  transforms: [FieldTransform] = [],
  if precondition: Precondition = .none
) -> Write {
  Write(
    .update(
      name(path),
      fields: fields,
      mask: mask?.map { FieldPath($0.split(separator: ".").map(String.init)) },
      transforms: transforms
    ),
    precondition: precondition
  )
}

func delete(_ path: String, if precondition: Precondition = .none) -> Write {
  Write(.delete(name(path)), precondition: precondition)
}

func verify(_ path: String, if precondition: Precondition) -> Write {
  Write(.verify(name(path)), precondition: precondition)
}
