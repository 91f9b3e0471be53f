@testable import DatabaseRules
import Testing
