package import HTTPTypes

extension HTTPField.Name {
  /// The W3C trace context header, which places a request in a trace.
  package static let traceParent = fieldName("traceparent")
}
