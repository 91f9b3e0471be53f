import FirestoreClient
import Foundation
import FunctionsRuntime
import OutboundHTTP
import PsstFunctions
import PsstServices

// The one place of Psst that reads the environment and puts everything together.
let environment = await FunctionsApp.environment()
let http = OutboundClient(configuration: .init(environment: environment))
do {
  let services = MessageServices(
    firestore: Firestore(environment: environment, http: http),
    settings: try PsstSettings(environment: environment),
    http: http
  )
  let functions = MessageFunctions(services: services)
  // A worker of one function; without it the binary only writes its manifest.
  if let target = environment["FUNCTION_TARGET"],
    environment["FUNCTIONS_MANIFEST_OUTPUT_PATH"] == nil,
    functions.onVectors.contains(where: { $0.name == target })
  {
    try await services.checkIndex()
  }
  try await functions.app.run()
} catch let error as ServiceError {
  FileHandle.standardError.write(Data("psst-functions: \(error)\n".utf8))
  exit(1)
}
