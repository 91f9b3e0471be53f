/// A CloudEvents 1.0 event in memory.
package struct CloudEvent: Sendable, Hashable {
  package var id: String
  package var source: String
  package var type: String
  package var subject: String?
  /// The time in RFC 3339.
  package var time: String?
  package var dataContentType: String?
  package var dataSchema: String?
  /// The extension attributes by lower-case name, such as `document` and `database`.
  package var extensions: [String: String]
  package var data: [UInt8]

  /// Creates an event of `specversion` 1.0.
  package init(
    id: String,
    source: String,
    type: String,
    subject: String? = nil,
    time: String? = nil,
    dataContentType: String? = nil,
    dataSchema: String? = nil,
    extensions: [String: String] = [:],
    data: [UInt8] = []
  ) {
    self.id = id
    self.source = source
    self.type = type
    self.subject = subject
    self.time = time
    self.dataContentType = dataContentType
    self.dataSchema = dataSchema
    self.extensions = extensions
    self.data = data
  }

  /// Returns an attribute or extension by name; nil if the event lacks it.
  package func attribute(_ name: String) -> String? {
    switch name {
    case "id": id
    case "source": source
    case "type": type
    case "subject": subject
    case "time": time
    case "datacontenttype": dataContentType
    case "dataschema": dataSchema
    default: extensions[name]
    }
  }
}
