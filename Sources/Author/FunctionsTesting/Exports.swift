// A test uses the names of what it tests; one import of `FunctionsTesting` brings them all.
@_exported public import FirestoreClient
@_exported public import FunctionsRuntime
@_exported public import OutboundHTTP
