import FirestoreClient

extension WriteResult {
  /// The server's time in the fields of the write.
  var serverTime: Timestamp? {
    for case .timestamp(let time) in transformResults { return time }
    return updateTime
  }
}
