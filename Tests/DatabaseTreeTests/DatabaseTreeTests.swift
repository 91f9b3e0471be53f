@testable import DatabaseTree
import Testing
