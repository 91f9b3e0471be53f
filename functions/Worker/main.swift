import FirestoreClient
import Foundation
import FunctionsRuntime
import OutboundHTTP
import PsstFunctions
import PsstServices

// The one place of Psst that reads the environment and puts everything together.
let environment = ProcessInfo.processInfo.environment
let http = OutboundClient()
do {
  let services = MessageServices(
    firestore: Firestore(environment: environment, http: http),
    settings: try PsstSettings(environment: environment),
    http: http
  )
  // A worker of one function; without it the binary only writes its manifest.
  if environment["FUNCTION_TARGET"] != nil, environment["FUNCTIONS_MANIFEST_OUTPUT_PATH"] == nil {
    try await services.checkIndex()
  }
  try await MessageFunctions(services: services).app.run()
} catch let error as ServiceError {
  FileHandle.standardError.write(Data("psst-functions: \(error)\n".utf8))
  exit(1)
}
