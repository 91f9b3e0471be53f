package import DocumentModel
package import Events
package import Identity

extension BinaryEncoder {
  /// Writes the committer's identity.
  package mutating func append(_ auth: AuthContext) {
    switch auth {
    case .admin: append(byte: 0)
    case .unauthenticated: append(byte: 1)
    case .user(let user):
      append(byte: 2)
      append(user.uid)
      append(user.claimsJSON)
    }
  }

  /// Writes what happened.
  package mutating func append(_ occurrence: Occurrence) {
    switch occurrence {
    case .event(let event):
      append(byte: 0)
      append(event)
    case .schedule(let function, let time):
      append(byte: 1)
      append(function)
      append(signed: time.microseconds)
    case .task(let task):
      append(byte: 2)
      append(task)
    }
  }

  private mutating func append(_ event: CloudEvent) {
    append(event.id)
    append(event.source)
    append(event.type)
    append(optional: event.subject)
    append(optional: event.time)
    append(optional: event.dataContentType)
    append(optional: event.dataSchema)
    append(event.extensions)
    append(data: event.data)
  }

  private mutating func append(_ task: EnqueuedTask) {
    append(task.id)
    append(task.queue)
    append(data: task.body)
    append(task.headers)
    append(signed: task.scheduleTime.microseconds)
    append(task.dispatchDeadline)
  }

  /// Writes a text that may be missing.
  package mutating func append(optional text: String?) {
    append(byte: text == nil ? 0 : 1)
    if let text { append(text) }
  }

  private mutating func append(_ pairs: [String: String]) {
    append(UInt64(pairs.count))
    for (key, value) in pairs.sorted(by: { $0.key < $1.key }) {
      append(key)
      append(value)
    }
  }
}

extension BinaryDecoder {
  /// Reads the committer's identity.
  package mutating func auth() throws(CorruptDataError) -> AuthContext {
    switch try byte() {
    case 0: return .admin
    case 1: return .unauthenticated
    case 2: return .user(UserIdentity(uid: try text(), claimsJSON: try text()))
    case let tag: throw CorruptDataError("unknown kind of caller \(tag)")
    }
  }

  /// Reads what happened.
  package mutating func occurrence() throws(CorruptDataError) -> Occurrence {
    switch try byte() {
    case 0: return .event(try cloudEvent())
    case 1:
      return .schedule(function: try text(), time: Timestamp(microseconds: try signed()))
    case 2: return .task(try task())
    case let tag: throw CorruptDataError("unknown kind of occurrence \(tag)")
    }
  }

  private mutating func cloudEvent() throws(CorruptDataError) -> CloudEvent {
    CloudEvent(
      id: try text(),
      source: try text(),
      type: try text(),
      subject: try optionalText(),
      time: try optionalText(),
      dataContentType: try optionalText(),
      dataSchema: try optionalText(),
      extensions: try pairs(),
      data: try data()
    )
  }

  private mutating func task() throws(CorruptDataError) -> EnqueuedTask {
    EnqueuedTask(
      id: try text(),
      queue: try text(),
      body: try data(),
      headers: try pairs(),
      scheduleTime: Timestamp(microseconds: try signed()),
      dispatchDeadline: try double()
    )
  }

  /// Reads a text that may be missing.
  package mutating func optionalText() throws(CorruptDataError) -> String? {
    try byte() == 0 ? nil : try text()
  }

  private mutating func pairs() throws(CorruptDataError) -> [String: String] {
    var pairs: [String: String] = [:]
    for _ in 0..<(try count()) {
      let key = try text()
      pairs[key] = try text()
    }
    return pairs
  }
}
