// A toolchain or platform may lack either framework. A module that is not a test can import both:
// SwiftPM passes their search paths to every target, and only tests link this module.
#if canImport(Testing)
  import Testing
#endif
#if canImport(XCTest)
  import Foundation
  import Synchronization
  import XCTest
#endif

/// The test frameworks that can record a failed check.
enum TestFrameworks {
  /// Records a failure with the framework whose test runs; returns false if none runs.
  ///
  /// A detached task of a Swift Testing test does not belong to a test.
  static func record(_ message: String, at site: CallSite) -> Bool {
    #if canImport(Testing)
      if Test.current != nil {
        Issue.record(
          Comment(rawValue: message),
          sourceLocation: SourceLocation(
            fileID: "\(site.fileID)",
            filePath: "\(site.filePath)",
            line: Int(site.line),
            column: Int(site.column)
          )
        )
        return true
      }
    #endif
    #if canImport(XCTest)
      return XCTestRecorder.record(message, at: site)
    #else
      return false
    #endif
  }
}

#if canImport(ObjectiveC) && canImport(XCTest)
  private enum XCTestRecorder {
    /// Records a failure if an XCTest test runs.
    ///
    /// Apple's XCTest must not be asked to fail outside a test, and only a function without a
    /// declaration in its headers knows the current test.
    static func record(_ message: String, at site: CallSite) -> Bool {
      typealias CurrentTestCase = @convention(c) () -> UnsafeRawPointer?
      // The handle is RTLD_DEFAULT, a macro that Swift does not import.
      let symbol = dlsym(UnsafeMutableRawPointer(bitPattern: -2), "_XCTCurrentTestCase")
      guard let symbol, unsafeBitCast(symbol, to: CurrentTestCase.self)() != nil else {
        return false
      }
      XCTFail(message, file: site.filePath, line: site.line)
      return true
    }
  }
#elseif canImport(XCTest)
  private enum XCTestRecorder {
    /// A lock for the observers of XCTest, which checks of several tasks would change at once.
    private static let turn = Mutex(())

    /// Records a failure if an XCTest test runs.
    ///
    /// The open-source XCTest ignores a failure outside a test, and tells its observers of any
    /// other before `XCTFail` returns.
    static func record(_ message: String, at site: CallSite) -> Bool {
      turn.withLock { _ in
        let observer = FailureObserver()
        XCTestObservationCenter.shared.addTestObserver(observer)
        defer { XCTestObservationCenter.shared.removeTestObserver(observer) }
        XCTFail(message, file: site.filePath, line: site.line)
        return observer.hasSeenFailure
      }
    }
  }

  private final class FailureObserver: NSObject, XCTestObservation {
    private(set) var hasSeenFailure = false

    func testCase(
      _ testCase: XCTestCase,
      didFailWithDescription description: String,
      inFile filePath: String?,
      atLine lineNumber: Int
    ) {
      hasSeenFailure = true
    }
  }
#endif
