// A test uses the declarations of the modules that it tests. An import of `FunctionsTesting` makes
// all of them available.
@_exported public import FirestoreClient
@_exported public import FunctionsRuntime
@_exported public import OutboundHTTP
