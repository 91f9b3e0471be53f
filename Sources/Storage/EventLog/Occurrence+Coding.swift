package import DocumentModel
package import Events
package import Identity

extension BinaryEncoder {
  /// Writes the identity of the caller that committed.
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

  /// Writes an event, a scheduled run, a task or a change in the Realtime Database.
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
      append(byte: task.target == nil ? 2 : 3)
      append(task)
      if let target = task.target { append(target) }
    case .value(let change):
      append(byte: 4)
      append(change.instance)
      append(UInt64(change.path.count))
      for key in change.path { append(key) }
      append(data: change.before)
      append(data: change.after)
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

  private mutating func append(_ target: TaskTarget) {
    append(target.method)
    switch target.place {
    case .function(let name, let path):
      append(byte: 0)
      append(name)
      append(path)
    case .url(let url):
      append(byte: 1)
      append(url)
    }
  }

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
  /// Reads the identity of the caller that committed.
  package mutating func auth() throws(CorruptDataError) -> AuthContext {
    switch try byte() {
    case 0: return .admin
    case 1: return .unauthenticated
    case 2: return .user(UserIdentity(uid: try text(), claimsJSON: try text()))
    case let tag: throw CorruptDataError("unknown kind of caller \(tag)")
    }
  }

  /// Reads an event, a scheduled run, a task or a change in the Realtime Database.
  package mutating func occurrence() throws(CorruptDataError) -> Occurrence {
    switch try byte() {
    case 0: return .event(try cloudEvent())
    case 1:
      return .schedule(function: try text(), time: Timestamp(microseconds: try signed()))
    case 2: return .task(try task())
    case 3:
      var task = try task()
      task.target = try taskTarget()
      return .task(task)
    case 4: return .value(try databaseChange())
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

  private mutating func databaseChange() throws(CorruptDataError) -> DatabaseChange {
    let instance = try text()
    var path: [String] = []
    for _ in 0..<(try count()) { path.append(try text()) }
    return DatabaseChange(instance: instance, path: path, before: try data(), after: try data())
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

  private mutating func taskTarget() throws(CorruptDataError) -> TaskTarget {
    let method = try text()
    switch try byte() {
    case 0: return TaskTarget(method: method, place: .function(try text(), path: try text()))
    case 1: return TaskTarget(method: method, place: .url(try text()))
    case let tag: throw CorruptDataError("unknown kind of task target \(tag)")
    }
  }

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
