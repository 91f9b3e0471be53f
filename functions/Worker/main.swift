import FirestoreClient
import Foundation
import FunctionsRuntime
import OutboundHTTP
import PsstFunctions
import PsstBackend

// Only this file of Psst reads the environment and creates the services.
let environment = await FunctionsApp.environment()
let http = OutboundClient(configuration: .init(environment: environment))
do {
  let services = BackendServices(
    firestore: Firestore(environment: environment, http: http),
    settings: try PsstSettings(environment: environment),
    http: http,
    retries: ServiceRetries(now: { FunctionClock.now.date })
  )
  let users = AuthAdmin(environment: environment, http: http)
  await AppFunctions(services: services, users: users).app.runService()
} catch {
  FileHandle.standardError.write(Data("psst-functions: \(error)\n".utf8))
  exit(1)
}
