@testable import RealtimeDatabaseEmulator
import Testing
