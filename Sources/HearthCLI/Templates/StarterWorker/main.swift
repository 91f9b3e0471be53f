import FirestoreClient
import Foundation
import FunctionsRuntime
import StarterFunctions

// The program that runs the functions, here and in production.
let firestore = Firestore(environment: ProcessInfo.processInfo.environment)
try await WelcomeFunctions(firestore: firestore).app.run()
