/// A client that moves the bytes of transfers.
protocol TransferDriver: Sendable {
  /// Ends a transfer immediately for its reader.
  ///
  /// The connection is released afterwards. A transfer that has ended stays as it is.
  func cancel(_ transfer: Transfer)

  /// Resumes a transfer whose sender has to wait.
  func resume(_ transfer: Transfer)
}

/// The right to read a streamed body.
///
/// The request ends when the lease is released.
final class TransferLease: Sendable {
  private let transfer: Transfer
  private let driver: any TransferDriver

  init(_ transfer: Transfer, of driver: any TransferDriver) {
    self.transfer = transfer
    self.driver = driver
  }

  deinit { driver.cancel(transfer) }

  func chunk() async throws -> [UInt8]? {
    try await withTaskCancellationHandler {
      guard let (bytes, resume) = try await transfer.chunk() else { return nil }
      if resume { driver.resume(transfer) }
      return bytes
    } onCancel: {
      driver.cancel(transfer)
    }
  }
}
