// The names an author needs are spread over rooms; one import of `FunctionsRuntime` brings them
// all: documents and timestamps, status codes, HTTP's own types, and the logger of events and
// requests.
@_exported public import DocumentModel
@_exported public import HTTPTypes
@_exported public import Logging
@_exported public import RuntimeSupport
