import FirestoreClient
import FunctionsRuntime
import StarterFunctions

// The program that runs the functions, here and in production.
let environment = await FunctionsApp.environment()
let firestore = Firestore(environment: environment)
await WelcomeFunctions(firestore: firestore).app.runService()
