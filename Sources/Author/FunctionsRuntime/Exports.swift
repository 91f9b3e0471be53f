// The declarations that an author needs are spread over several modules. An import of
// `FunctionsRuntime` makes all of them available: documents and timestamps, status codes, delays
// between attempts, the types of swift-http-types, and the logger of events and requests.
@_exported public import DocumentModel
@_exported public import FlowControl
@_exported public import HTTPTypes
@_exported public import Logging
@_exported public import StatusCodes
