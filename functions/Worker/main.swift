import FirestoreClient
import Foundation
import FunctionsRuntime
import OutboundHTTP
import PsstFunctions
import PsstServices

// Only this file of Psst reads the environment and creates the services.
let environment = await FunctionsApp.environment()
let http = OutboundClient(configuration: .init(environment: environment))
do {
  let services = MessageServices(
    firestore: Firestore(environment: environment, http: http),
    settings: try PsstSettings(environment: environment),
    http: http,
    retries: ServiceRetries(now: { FunctionClock.now.date })
  )
  let users = AuthAdmin(environment: environment, http: http)
  await MessageFunctions(services: services, users: users).app.runService()
} catch {
  FileHandle.standardError.write(Data("psst-functions: \(error)\n".utf8))
  exit(1)
}
