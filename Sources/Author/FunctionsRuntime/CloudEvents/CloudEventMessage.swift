import Events
import Invocation

/// One CloudEvent of any service, as a handler gets it.
///
/// Events come at least once and can come out of order; `id` tells two deliveries of one event from
/// two events.
public struct CloudEventMessage<Payload: Sendable>: Sendable {
  /// The event's id; unique together with `source`, and the same on each delivery.
  public var id: String
  /// The place of the event, such as `//storage.googleapis.com/projects/_/buckets/photos`.
  public var source: String
  /// The event's type, such as `google.cloud.storage.object.v1.finalized`.
  public var type: String
  /// The event's subject within the source, such as `objects/cat.jpg`.
  public var subject: String?
  /// When the event happened.
  public var time: Timestamp?
  /// The media type of the data as received.
  public var dataContentType: String?
  /// The address of the data's schema.
  public var dataSchema: String?
  /// All other attributes by their names, such as `bucket`.
  public var attributes: [String: String]
  /// The captures of the function's path patterns.
  public var params: EventParams
  /// The data, decoded or as the received bytes.
  public var data: Payload
  /// The number of this event's delivery to this function, from 1.
  public var attempt: Int
  /// The id that follows this invocation through the logs of server and worker.
  public var invocationID: String
  /// A logger whose lines carry the invocation's id.
  public var logger: Logger

  /// An event as a test makes one.
  public init(
    type: String,
    data: Payload,
    id: String = "test",
    source: String = "//test",
    subject: String? = nil,
    time: Timestamp? = nil,
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
    self.time = time
    self.dataContentType = dataContentType
    self.dataSchema = dataSchema
    self.attributes = attributes
    self.params = EventParams(params)
    self.data = data
    self.attempt = attempt
    self.invocationID = invocationID
    self.logger = logger
  }

  /// The value of any attribute by its name in CloudEvents, even one with its own property.
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
