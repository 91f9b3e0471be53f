import Events

/// One CloudEvent from any service, with its data.
///
/// Events are delivered at least once and can arrive out of order. Two deliveries of the same event
/// have the same `source` and `id`, so a handler can recognize repetitions by them.
public struct CloudEventMessage<Payload: Sendable>: Sendable {
  /// The event's id, unique together with `source` and the same in each delivery of the event.
  public var id: String
  /// The resource of the event, such as `//storage.googleapis.com/projects/_/buckets/photos`.
  public var source: String
  /// The CloudEvents type, such as `google.cloud.storage.object.v1.finalized`.
  public var type: String
  /// The part of the source that the event is about, such as `objects/cat.jpg`; nil if not given.
  public var subject: String?
  /// The time at which the event happened; nil if the sender did not state it.
  public var time: Timestamp?
  /// The media type of the data as received, such as `application/json`.
  public var dataContentType: String?
  /// The URI of the schema of the data; nil if the sender did not state it.
  public var dataSchema: String?
  /// All other attributes by name, such as `bucket`.
  public var attributes: [String: String]
  /// The values that the wildcards of the function's path patterns captured.
  public var params: EventParams
  /// The decoded data, or the received bytes if the payload type is `[UInt8]`.
  public var data: Payload
  /// The number of this delivery of the event to the function, starting at 1.
  public var attempt: Int
  /// The id that identifies this invocation in the logs of the server and the worker.
  public var invocationID: String
  /// A logger that adds the id of the invocation to each line.
  public var logger: Logger

  /// Creates an event for a test.
  public init(
    type: String,
    data: Payload,
    id: String = "test",
    source: String = "//test",
    subject: String? = nil,
    time: (any PointInTime)? = nil,
    dataContentType: String? = nil,
    dataSchema: String? = nil,
    attributes: [String: String] = [:],
    params: [String: String] = [:],
    attempt: Int = 1,
    invocationID: String = "test",
    logger: Logger = Logger(label: "event")
  ) {
    self.id = id
    self.source = source
    self.type = type
    self.subject = subject
    self.time = time?.timestamp
    self.dataContentType = dataContentType
    self.dataSchema = dataSchema
    self.attributes = attributes
    self.params = EventParams(params)
    self.data = data
    self.attempt = attempt
    self.invocationID = invocationID
    self.logger = logger
  }

  /// Returns the value of any attribute by its CloudEvents name, including those with a property.
  public func attribute(_ name: String) -> String? {
    switch name {
    case "id": id
    case "source": source
    case "type": type
    case "subject": subject
    case "time": time?.description
    case "datacontenttype": dataContentType
    case "dataschema": dataSchema
    default: attributes[name]
    }
  }
}
