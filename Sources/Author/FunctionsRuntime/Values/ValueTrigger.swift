import DatabaseModel
import Events

/// A function that runs when a value is created in the Realtime Database.
///
/// `event.data` is the value.
///
/// ```swift
/// var greet: OnValueCreated<Guest> {
///   .init("greet", at: "guests/{guestId}") { event in
///     event.logger.info("Welcome, \(event.data.name) (\(try event.params.guestId))")
///   }
/// }
/// ```
///
/// A value has everything below its path. A write above the path causes an event for each value
/// that it changes, and a write below it an event for the value that it is part of.
///
/// With `path:` in place of `at:`, the handler also receives the keys of the path, with names and
/// types that the compiler checks; see `DocumentPath`.
///
/// The value is decoded before the handler runs. A `Date` is a number of milliseconds since 1970,
/// as the server's time is, and a list is an object whose keys are indices. A value that does not
/// decode is a permanent failure, which is logged with the path of the invalid part.
public typealias OnValueCreated<Payload: Decodable & Sendable> =
  ValueFunction<ValueCreation<Payload>>

/// A function that runs when a value changes in the Realtime Database.
///
/// `event.data` has the value before and after. In all other respects it is like `OnValueCreated`.
public typealias OnValueUpdated<Payload: Decodable & Sendable> = ValueFunction<ValueUpdate<Payload>>

/// A function that runs when a value is deleted in the Realtime Database.
///
/// `event.data` is its last state. In all other respects it is like `OnValueCreated`.
public typealias OnValueDeleted<Payload: Decodable & Sendable> =
  ValueFunction<ValueDeletion<Payload>>

/// A function that runs when a value is created, updated or deleted in the Realtime Database.
///
/// `event.data` has the value before and after, which are nil if there was none.
///
/// ```swift
/// var mirror: OnValueWritten<Presence> {
///   .init("mirror", at: "presence/{userId}") { event in
///     try await copy(event.data.after, of: try event.params.userId)
///   }
/// }
/// ```
///
/// In all other respects it is like `OnValueCreated`.
public typealias OnValueWritten<Payload: Decodable & Sendable> = ValueFunction<ValueWrite<Payload>>

/// A kind of changes of values that runs functions.
///
/// Do not conform other types to this protocol.
public protocol ValueTrigger: SendableMetatype {
  /// The type as which values are read.
  associatedtype Payload: Decodable, Sendable
  /// The data of the events.
  associatedtype Data: Sendable

  /// The conversion of events to their data.
  static var reading: ValueReading<Payload, Data> { get }
}

/// A kind of event and the conversion of its values to the handler's data.
public struct ValueReading<Payload: Sendable, Data: Sendable>: Sendable {
  let kind: ChangeKind
  /// The conversion, which gets a function that reads a value.
  let read: @Sendable (ReceivedValues, (DatabaseNode) throws -> Payload) throws -> Data
}

/// The trigger of `OnValueCreated`, whose data is the new value.
public enum ValueCreation<Payload: Decodable & Sendable>: ValueTrigger {
  /// The conversion of events to their data.
  public static var reading: ValueReading<Payload, Payload> {
    ValueReading(kind: .created) { values, value in try value(values.after) }
  }
}

/// The trigger of `OnValueDeleted`, whose data is the last value.
public enum ValueDeletion<Payload: Decodable & Sendable>: ValueTrigger {
  /// The conversion of events to their data.
  public static var reading: ValueReading<Payload, Payload> {
    ValueReading(kind: .deleted) { values, value in try value(values.before) }
  }
}

extension ValueUpdate: ValueTrigger where Payload: Decodable {
  /// The conversion of events to their data.
  public static var reading: ValueReading<Payload, ValueUpdate> {
    ValueReading(kind: .updated) { values, value in
      ValueUpdate(before: try value(values.before), after: try value(values.after))
    }
  }
}

extension ValueWrite: ValueTrigger where Payload: Decodable {
  /// The conversion of events to their data.
  public static var reading: ValueReading<Payload, ValueWrite> {
    ValueReading(kind: .written) { values, value in
      ValueWrite(
        before: values.before.isEmpty ? nil : try value(values.before),
        after: values.after.isEmpty ? nil : try value(values.after)
      )
    }
  }
}
